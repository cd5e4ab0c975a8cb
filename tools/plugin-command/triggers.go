package main

import (
	"context"
	"strings"

	p "github.com/pulumi/pulumi-go-provider"
)

// replaceOnTriggers makes a changed trigger replace the resource. The framework does so only when
// the whole list comes or goes: it looks for the tag under the name "triggers[0]".
func replaceOnTriggers(inner p.Provider) p.Provider {
	wrapped := inner
	wrapped.Diff = func(ctx context.Context, req p.DiffRequest) (p.DiffResponse, error) {
		response, err := inner.Diff(ctx, req)
		for path, found := range response.DetailedDiff {
			if strings.HasPrefix(path, "triggers[") {
				found.Kind = p.DiffKind(strings.TrimSuffix(string(found.Kind), "&replace") + "&replace")
				response.DetailedDiff[path] = found
			}
		}
		return response, err
	}
	return wrapped
}

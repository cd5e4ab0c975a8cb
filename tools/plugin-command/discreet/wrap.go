package discreet

import (
	"context"
	"errors"
	"strings"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// Wrap masks every error of a provider, the framework's own included.
func Wrap(inner p.Provider) p.Provider {
	wrapped := inner
	wrapped.Check = func(ctx context.Context, req p.CheckRequest) (p.CheckResponse, error) {
		ctx, mask := masked(ctx, req.Inputs, req.State)
		response, err := inner.Check(ctx, req)
		for i, failure := range response.Failures {
			response.Failures[i] = unattached(mask, failure)
		}
		return response, discreetly(mask, err)
	}
	wrapped.Diff = func(ctx context.Context, req p.DiffRequest) (p.DiffResponse, error) {
		ctx, mask := masked(ctx, req.Inputs, req.OldInputs, req.State)
		response, err := inner.Diff(ctx, req)
		return response, discreetly(mask, err)
	}
	wrapped.Create = func(ctx context.Context, req p.CreateRequest) (p.CreateResponse, error) {
		ctx, mask := masked(ctx, req.Properties)
		response, err := inner.Create(ctx, req)
		return response, discreetly(mask, err)
	}
	wrapped.Read = func(ctx context.Context, req p.ReadRequest) (p.ReadResponse, error) {
		ctx, mask := masked(ctx, req.Inputs, req.Properties)
		response, err := inner.Read(ctx, req)
		return response, discreetly(mask, err)
	}
	wrapped.Update = func(ctx context.Context, req p.UpdateRequest) (p.UpdateResponse, error) {
		ctx, mask := masked(ctx, req.Inputs, req.OldInputs, req.State)
		response, err := inner.Update(ctx, req)
		return response, discreetly(mask, err)
	}
	wrapped.Delete = func(ctx context.Context, req p.DeleteRequest) error {
		ctx, mask := masked(ctx, req.Properties, req.OldInputs)
		return discreetly(mask, inner.Delete(ctx, req))
	}
	return wrapped
}

// unattached names the property in the reason alone. For a failure that is attached to a property
// the engine prints the property's whole value: a connection, private key included.
func unattached(mask Mask, failure p.CheckFailure) p.CheckFailure {
	reason := strings.TrimSpace(failure.Reason)
	if strings.Contains(reason, "Unrecognized field") {
		reason += ". Correct its name, or bring the plugin and the SDK to the same version"
	}
	return p.CheckFailure{Reason: mask.Apply(failure.Property + ": " + reason)}
}

func masked(ctx context.Context, groups ...property.Map) (context.Context, Mask) {
	var secrets []string
	for _, group := range groups {
		secrets = append(secrets, secretsIn(group)...)
	}
	mask := NewMask(secrets)
	return with(ctx, mask), mask
}

// discreetly drops the error's chain on purpose: what it wraps has not been masked.
func discreetly(mask Mask, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(mask.Apply(err.Error()))
}

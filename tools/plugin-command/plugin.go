package main

import (
	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"

	"berth/tools/plugin-command/discreet"
	"berth/tools/plugin-command/local"
	"berth/tools/plugin-command/remote"
)

// The packages' names are the tokens' modules: command:remote:Command.
func newPlugin() (p.Provider, error) {
	plugin, err := infer.NewProviderBuilder().
		WithDisplayName("Command").
		WithResources(
			infer.Resource(remote.Command{}),
			infer.Resource(remote.CopyToRemote{}),
			infer.Resource(remote.CopyFile{}),
			infer.Resource(local.Command{}),
		).
		Build()
	if err != nil {
		return p.Provider{}, err
	}
	return discreet.Wrap(replaceOnTriggers(plugin)), nil
}

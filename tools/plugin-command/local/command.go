// Package local runs commands on this machine.
package local

import (
	"context"

	"github.com/pulumi/pulumi-go-provider/infer"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"berth/tools/plugin-command/execution"
)

// Command is command:local:Command.
type Command struct{}

// CommandInputs has every field that the SDK sends.
type CommandInputs struct {
	Create                 *string           `pulumi:"create,optional"`
	Update                 *string           `pulumi:"update,optional"`
	Delete                 *string           `pulumi:"delete,optional"`
	Triggers               []any             `pulumi:"triggers,optional"               provider:"replaceOnChanges"`
	Interpreter            []string          `pulumi:"interpreter,optional"`
	Dir                    *string           `pulumi:"dir,optional"`
	Stdin                  *string           `pulumi:"stdin,optional"`
	Environment            map[string]string `pulumi:"environment,optional"`
	AssetPaths             []string          `pulumi:"assetPaths,optional"`
	ArchivePaths           []string          `pulumi:"archivePaths,optional"`
	Logging                *Logging          `pulumi:"logging,optional"`
	AddPreviousOutputInEnv *bool             `pulumi:"addPreviousOutputInEnv,optional"`
}

// CommandOutputs repeats the inputs: delete runs with what the state holds.
type CommandOutputs struct {
	CommandInputs
	Stdout  string                      `pulumi:"stdout"`
	Stderr  string                      `pulumi:"stderr"`
	Assets  *map[string]*resource.Asset `pulumi:"assets,optional"`
	Archive *resource.Archive           `pulumi:"archive,optional"`
}

// Annotate documents the resource and sets its defaults.
func (c *CommandInputs) Annotate(a infer.Annotator) {
	a.Describe(&c.Create, "The command to run on create.")
	a.Describe(&c.Update, "The command to run on update; if unset, create runs again.")
	a.Describe(&c.Delete, "The command to run on delete.")
	a.Describe(&c.Triggers, "The resource is replaced if any of these values change.")
	a.Describe(&c.Interpreter, "What runs the command. Defaults to /bin/sh -c.")
	a.Describe(&c.Dir, "Where the command runs.")
	a.Describe(&c.Stdin, "A string for the command's standard input.")
	a.Describe(&c.Environment, "Additional variables for the command.")
	a.Describe(&c.AssetPaths, "Globs of files to return as assets; a leading ! excludes.")
	a.Describe(&c.ArchivePaths, "Globs of files to return as one archive; a leading ! excludes.")
	a.Describe(&c.Logging, "Which streams are shown. Defaults to both.")
	a.Describe(&c.AddPreviousOutputInEnv, "Whether the previous run's output is passed on.")
	a.SetDefault(&c.AddPreviousOutputInEnv, true)
}

// Create runs the create command.
func (Command) Create(
	ctx context.Context, req infer.CreateRequest[CommandInputs],
) (infer.CreateResponse[CommandOutputs], error) {
	response := infer.CreateResponse[CommandOutputs]{
		Output: CommandOutputs{CommandInputs: req.Inputs},
	}
	id, err := resource.NewUniqueHex(req.Name, 8, 0)
	if err != nil || req.DryRun {
		return response, err
	}
	response.ID = id
	err = run(ctx, &response.Output, req.Inputs.Create)
	return response, err
}

// Update runs the update command or, without one, the create command.
func (Command) Update(
	ctx context.Context, req infer.UpdateRequest[CommandInputs, CommandOutputs],
) (infer.UpdateResponse[CommandOutputs], error) {
	state := req.State
	state.CommandInputs = req.Inputs
	var err error
	if !req.DryRun {
		err = run(ctx, &state, execution.OnUpdate(req.Inputs.Create, req.Inputs.Update))
	}
	return infer.UpdateResponse[CommandOutputs]{Output: state}, err
}

// Delete runs the delete command.
func (Command) Delete(
	ctx context.Context, req infer.DeleteRequest[CommandOutputs],
) (infer.DeleteResponse, error) {
	return infer.DeleteResponse{}, run(ctx, &req.State, req.State.Delete)
}

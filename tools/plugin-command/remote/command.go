package remote

import (
	"context"

	"github.com/pulumi/pulumi-go-provider/infer"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"berth/tools/plugin-command/execution"
)

// Command is command:remote:Command.
type Command struct{}

// CommandInputs has every field that the SDK sends: the framework refuses one it does not know.
type CommandInputs struct {
	Connection             Connection        `pulumi:"connection"                      provider:"secret"`
	Create                 *string           `pulumi:"create,optional"`
	Update                 *string           `pulumi:"update,optional"`
	Delete                 *string           `pulumi:"delete,optional"`
	Triggers               []any             `pulumi:"triggers,optional"               provider:"replaceOnChanges"`
	Stdin                  *string           `pulumi:"stdin,optional"`
	Environment            map[string]string `pulumi:"environment,optional"`
	Logging                *Logging          `pulumi:"logging,optional"`
	AddPreviousOutputInEnv *bool             `pulumi:"addPreviousOutputInEnv,optional"`
}

// CommandOutputs repeats the inputs: delete runs with what the state holds.
type CommandOutputs struct {
	CommandInputs
	Stdout string `pulumi:"stdout"`
	Stderr string `pulumi:"stderr"`
}

// Annotate documents the resource and sets its defaults.
func (c *CommandInputs) Annotate(a infer.Annotator) {
	a.Describe(&c.Create, "The command to run on create.")
	a.Describe(&c.Update, "The command to run on update; if unset, create runs again.")
	a.Describe(&c.Delete, "The command to run on delete.")
	a.Describe(&c.Triggers, "The resource is replaced if any of these values change.")
	a.Describe(&c.Stdin, "A string for the command's standard input.")
	a.Describe(&c.Environment, "Variables for the command; the server must accept them (AcceptEnv).")
	a.Describe(&c.Logging, "Which streams are shown. Defaults to both.")
	a.Describe(&c.AddPreviousOutputInEnv, "Whether the previous run's output is passed on.")
	a.SetDefault(&c.AddPreviousOutputInEnv, true)
}

// Create runs the create command.
func (Command) Create(
	ctx context.Context, req infer.CreateRequest[CommandInputs],
) (infer.CreateResponse[CommandOutputs], error) {
	state := CommandOutputs{CommandInputs: req.Inputs}
	response := infer.CreateResponse[CommandOutputs]{Output: state}
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
	state := CommandOutputs{
		CommandInputs: req.Inputs, Stdout: req.State.Stdout, Stderr: req.State.Stderr,
	}
	var err error
	if !req.DryRun {
		err = run(ctx, &state, execution.OnUpdate(req.Inputs.Create, req.Inputs.Update))
	}
	return infer.UpdateResponse[CommandOutputs]{Output: state}, err
}

// Delete runs the delete command, over the connection that the state holds.
func (Command) Delete(
	ctx context.Context, req infer.DeleteRequest[CommandOutputs],
) (infer.DeleteResponse, error) {
	return infer.DeleteResponse{}, run(ctx, &req.State, req.State.Delete)
}

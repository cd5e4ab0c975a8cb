package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"berth/tools/plugin-command/execution"
)

// How long a stopped command's children may keep its output open.
const drain = 5 * time.Second

// run leaves the command's output in the state; no command is no work.
func run(ctx context.Context, state *CommandOutputs, command *string) error {
	if command == nil {
		return nil
	}
	arguments := append(slices.Clone(state.Interpreter), *command)
	if len(state.Interpreter) == 0 {
		arguments = []string{"/bin/sh", "-c", *command}
	}
	logging := ""
	if state.Logging != nil {
		logging = string(*state.Logging)
	}
	streams := execution.NewStreams(ctx, logging)
	process := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	process.WaitDelay = drain
	process.Stdout, process.Stderr = streams.Stdout, streams.Stderr
	process.Env = environment(state)
	if state.Dir != nil {
		process.Dir = *state.Dir
	}
	if state.Stdin != nil && *state.Stdin != "" {
		process.Stdin = strings.NewReader(*state.Stdin)
	}
	if err := process.Run(); err != nil {
		return execution.Failed(ending(ctx, err), *command, streams)
	}
	state.Stdout, state.Stderr = streams.Outputs()
	return state.find()
}

func environment(state *CommandOutputs) []string {
	variables := os.Environ()
	previous := execution.Previous(state.AddPreviousOutputInEnv, state.Stdout, state.Stderr)
	for _, given := range []map[string]string{state.Environment, previous} {
		for _, name := range slices.Sorted(maps.Keys(given)) {
			variables = append(variables, name+"="+given[name])
		}
	}
	return variables
}

func ending(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before its end: %w", ctx.Err())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errors.New(exit.String())
	}
	return err
}

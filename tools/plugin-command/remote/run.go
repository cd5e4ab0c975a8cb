package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	p "github.com/pulumi/pulumi-go-provider"
	"golang.org/x/crypto/ssh"

	"berth/tools/plugin-command/execution"
)

// run leaves the command's output in the state; no command is no work.
func run(ctx context.Context, state *CommandOutputs, command *string) error {
	if command == nil {
		return nil
	}
	client, closeClient, err := state.Connection.dial(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	session, err := client.NewSession()
	if err != nil {
		return fmt.Errorf("%s opened no session: %w", state.Connection.Host, err)
	}
	defer func() { _ = session.Close() }()
	if err := pass(ctx, session, state); err != nil {
		return err
	}
	if state.Stdin != nil && *state.Stdin != "" {
		session.Stdin = strings.NewReader(*state.Stdin)
	}
	streams := execution.NewStreams(ctx, string(valueOr(state.Logging, "")))
	session.Stdout, session.Stderr = streams.Stdout, streams.Stderr
	if err := session.Run(*command); err != nil {
		return execution.Failed(ending(ctx, err), *command, streams)
	}
	state.Stdout, state.Stderr = streams.Outputs()
	return nil
}

// pass fails for a variable that the program asked for; the previous output is only a help.
func pass(ctx context.Context, session *ssh.Session, state *CommandOutputs) error {
	for _, name := range slices.Sorted(maps.Keys(state.Environment)) {
		if err := session.Setenv(name, state.Environment[name]); err != nil {
			return errors.New(refusedVariable(name))
		}
	}
	previous := execution.Previous(state.AddPreviousOutputInEnv, state.Stdout, state.Stderr)
	for _, name := range slices.Sorted(maps.Keys(previous)) {
		if err := session.Setenv(name, previous[name]); err != nil {
			p.GetLogger(ctx).Warning(refusedVariable(name))
		}
	}
	return nil
}

func refusedVariable(name string) string {
	return fmt.Sprintf("the SSH server refused the variable %s. List it in sshd_config's "+
		"AcceptEnv, or set it in the command itself: '%s=value command'", name, name)
}

func ending(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before its end: %w", ctx.Err())
	}
	var exit *ssh.ExitError
	if errors.As(err, &exit) && exit.Signal() != "" {
		return fmt.Errorf("ended by signal %s", exit.Signal())
	}
	if errors.As(err, &exit) {
		return fmt.Errorf("exit status %d", exit.ExitStatus())
	}
	var lost *ssh.ExitMissingError
	if errors.As(err, &lost) {
		return errors.New("the connection was lost before it ended")
	}
	return err
}

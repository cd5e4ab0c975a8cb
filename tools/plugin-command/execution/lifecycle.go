package execution

// Names of the variables that carry the output of the run before.
const (
	PreviousStdout = "PULUMI_COMMAND_STDOUT"
	PreviousStderr = "PULUMI_COMMAND_STDERR"
)

// OnUpdate is the update command or, without one, the create command again.
func OnUpdate(create, update *string) *string {
	if update != nil {
		return update
	}
	return create
}

// Previous is what the run before wrote, unless the resource keeps it out of the environment.
func Previous(wanted *bool, stdout, stderr string) map[string]string {
	previous := map[string]string{}
	if wanted != nil && !*wanted {
		return previous
	}
	if stdout != "" {
		previous[PreviousStdout] = stdout
	}
	if stderr != "" {
		previous[PreviousStderr] = stderr
	}
	return previous
}

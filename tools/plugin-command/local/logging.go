package local

import "github.com/pulumi/pulumi-go-provider/infer"

// Logging says which of a command's streams are shown; both are kept as outputs either way.
type Logging string

// Values are the documented ones. The enum's token comes from its package, so each has its own.
func (Logging) Values() []infer.EnumValue[Logging] {
	return []infer.EnumValue[Logging]{
		{Name: "stdout", Value: "stdout", Description: "Capture stdout in logs but not stderr"},
		{Name: "stderr", Value: "stderr", Description: "Capture stderr in logs but not stdout"},
		{
			Name: "stdoutAndStderr", Value: "stdoutAndStderr",
			Description: "Capture stdout and stderr in logs",
		},
		{Name: "none", Value: "none", Description: "Capture no logs"},
	}
}

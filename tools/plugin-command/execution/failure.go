package execution

import (
	"fmt"
	"strings"
)

// A failure's stderr is cut to its end, where the cause stands.
const stderrShown = 4096

// Failed says how a command ended and what it wrote to stderr. Its stdout is a result, and may be
// a secret one, so it is not shown. Secret inputs are masked on the way out, by discreet.Wrap.
func Failed(ending error, command string, s *Streams) error {
	_, stderr := s.Outputs()
	if len(stderr) > stderrShown {
		stderr = "…" + strings.ToValidUTF8(stderr[len(stderr)-stderrShown:], "")
	}
	if stderr == "" {
		stderr = "(nothing)"
	}
	return fmt.Errorf("the command failed: %w\ncommand: %s\nstderr: %s", ending, command, stderr)
}

// Pulumi's Command plugin, as documented for the published one, whose module is on no registry.
package main

import (
	"context"
	"fmt"
	"os"
)

// Set by the linker: the version that the Python SDK asks for.
var version = "0.0.0-unset"

func main() {
	plugin, err := newPlugin()
	if err == nil {
		err = plugin.Run(context.Background(), "command", version)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "The Command plugin stopped: %v.\n", err)
		os.Exit(1)
	}
}

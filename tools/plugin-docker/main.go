// Pulumi's Docker plugin: the upstream Terraform provider behind Pulumi's bridge, as published.
package main

import (
	"fmt"
	"os"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
)

// Set by the linker: the version that the Python SDK asks for.
var version = "0.0.0-unset"

func main() {
	info := plugin()
	if len(os.Args) == 2 && os.Args[1] == "--properties" {
		if err := printProperties(os.Stdout, info); err != nil {
			fmt.Fprintf(os.Stderr, "The properties could not be written: %v.\n", err)
			os.Exit(1)
		}
		return
	}
	// The full schema serves SDK generation; at run time the engine asks for name and version.
	schema := fmt.Sprintf(`{"name":"docker","version":%q}`, version)
	tfbridge.Main("docker", version, info, []byte(schema))
}

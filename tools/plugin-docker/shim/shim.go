// Package shim hands out the upstream provider, which lies in an internal package.
// Go's internal rule goes by import path, so this module's path is below upstream's.
package shim

import (
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	"github.com/terraform-providers/terraform-provider-docker/internal/provider"
)

// Upstream is the Terraform provider that the plugin serves.
func Upstream(version string) *schema.Provider {
	return provider.New(version)()
}

//go:build modules

// Package modules names what is built here, so that go.mod and go.sum hold all of it.
package modules

import (
	_ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
	_ "github.com/pulumi/pulumi/sdk/v3/go/common/version"
)

package main

import (
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge/tokens"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/terraform-providers/terraform-provider-docker/shim"
)

// plugin says where the published plugin's names differ from what the bridge would choose.
func plugin() tfbridge.ProviderInfo {
	info := tfbridge.ProviderInfo{
		P:       shimv2.NewProvider(shim.Upstream(version)),
		Name:    "docker",
		Version: version,
		Config: map[string]*tfbridge.SchemaInfo{
			"host": {Default: &tfbridge.DefaultInfo{
				Value:   "unix:///var/run/docker.sock",
				EnvVars: []string{"DOCKER_HOST"},
			}},
			"registry_auth": {Name: "registryAuth", MaxItemsOne: tfbridge.False()},
		},
		Resources: map[string]*tfbridge.ResourceInfo{
			"docker_config": {Tok: "docker:index/serviceConfig:ServiceConfig"},
			"docker_container": {
				Tok: "docker:index/container:Container",
				// Two containers cannot hold one name or one port.
				DeleteBeforeReplace: true,
				Fields: map[string]*tfbridge.SchemaInfo{
					"command":           {Name: "command"},
					"networks_advanced": {Name: "networksAdvanced"},
				},
			},
			"docker_image": {
				Tok: "docker:index/remoteImage:RemoteImage",
				// A name that is written, never generated: it is what is pulled.
				Fields: map[string]*tfbridge.SchemaInfo{"name": {Name: "name"}},
			},
		},
		DataSources: map[string]*tfbridge.DataSourceInfo{
			"docker_image": {Tok: "docker:index/getRemoteImage:getRemoteImage"},
		},
	}
	info.MustComputeTokens(tokens.SingleModule("docker_", "index", tokens.MakeStandard("docker")))
	info.SetAutonaming(255, "-")
	return info
}

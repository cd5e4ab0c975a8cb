package main

import (
	"encoding/json"
	"io"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim"
)

// inputs maps each property's wire name to its own properties; a leaf has none.
type inputs map[string]inputs

// printProperties writes what each resource takes, so that a test can hold it to the Python SDK.
func printProperties(out io.Writer, info tfbridge.ProviderInfo) error {
	tokens := map[string]map[string]inputs{
		"pulumi:providers:docker": {"inputs": tree(info.P.Schema(), info.Config, settable)},
	}
	for name, resource := range info.Resources {
		schema := info.P.ResourcesMap().Get(name).Schema()
		tokens[string(resource.Tok)] = map[string]inputs{"inputs": tree(schema, resource.Fields, settable)}
	}
	return json.NewEncoder(out).Encode(tokens)
}

// A nested type is one for inputs and outputs, so the SDK can send its computed properties too.
func anything(shim.Schema) bool { return true }

func settable(property shim.Schema) bool { return property.Optional() || property.Required() }

func tree(
	schema shim.SchemaMap, overrides map[string]*tfbridge.SchemaInfo, wanted func(shim.Schema) bool,
) inputs {
	found := inputs{}
	schema.Range(func(name string, property shim.Schema) bool {
		if wanted(property) {
			found[tfbridge.TerraformToPulumiNameV2(name, schema, overrides)] = nested(
				property, overrides[name])
		}
		return true
	})
	return found
}

func nested(property shim.Schema, override *tfbridge.SchemaInfo) inputs {
	element, ok := property.Elem().(shim.Resource)
	if !ok {
		return inputs{}
	}
	var fields map[string]*tfbridge.SchemaInfo
	if override != nil && override.Elem != nil {
		fields = override.Elem.Fields
	}
	return tree(element.Schema(), fields, anything)
}

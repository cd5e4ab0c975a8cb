package discreet

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// Secret whether or not the program marked them: a connection's credentials, what goes to a
// command's standard input, and its environment.
var sensitive = map[string]bool{
	"password":           true,
	"privateKey":         true,
	"privateKeyPassword": true,
	"stdin":              true,
	"environment":        true,
}

// Marked secret as a whole by the SDK, though its host, port and user are what an error needs.
const connection = "connection"

func secretsIn(properties property.Map) []string {
	var found []string
	for name, value := range properties.All {
		found = append(found, secretsOf(name, value, false)...)
	}
	return found
}

func secretsOf(name string, value property.Value, inherited bool) []string {
	secret := inherited || sensitive[name] || (value.Secret() && name != connection)
	var found []string
	switch {
	case value.IsString():
		if secret {
			found = append(found, value.AsString())
		}
	case value.IsMap():
		for name, inner := range value.AsMap().All {
			found = append(found, secretsOf(name, inner, secret)...)
		}
	case value.IsArray():
		for _, inner := range value.AsArray().All {
			found = append(found, secretsOf("", inner, secret)...)
		}
	case value.IsAsset():
		// A text asset carries a file's content; its path is no secret.
		if text := value.AsAsset().Text; strings.TrimSpace(text) != "" {
			found = append(found, text)
		}
	}
	return found
}

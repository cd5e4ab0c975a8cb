package main

import (
	"strings"
	"testing"
	"time"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

func TestACustomTimeoutEndsACommandThatHangs(t *testing.T) {
	h := startSshd(t)
	hangs := map[string]property.Value{"create": text("sleep 60")}
	for token, inputs := range map[tokens.Type]property.Map{
		remoteCommand: h.inputs(hangs), localCommand: props(hangs),
	} {
		e := newEngine(t, token)
		request := p.CreateRequest{Urn: e.urn, Properties: e.checked(inputs), Timeout: 1}
		started := time.Now()
		_, err := e.server.Create(request)
		if err == nil || !strings.Contains(err.Error(), "stopped before its end") {
			t.Errorf("%s: the error says: %v", token, err)
		}
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("%s: a timeout of 1 s took %s", token, took)
		}
	}
}

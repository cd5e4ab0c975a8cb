package main

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"

	"github.com/blang/semver"
	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/integration"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// engine asks the plugin what Pulumi's engine would, in its order.
type engine struct {
	t      *testing.T
	server integration.Server
	urn    resource.URN
}

type deployed struct {
	id     string
	inputs property.Map
	state  property.Map
}

func newEngine(t *testing.T, token tokens.Type) *engine {
	t.Helper()
	plugin, err := newPlugin()
	if err != nil {
		t.Fatal(err)
	}
	server, err := integration.NewServer(
		t.Context(), "command", semver.MustParse("1.2.1"), integration.WithProvider(plugin))
	if err != nil {
		t.Fatal(err)
	}
	urn := resource.NewURN("test", "berth", "", token, "subject")
	return &engine{t: t, server: server, urn: urn}
}

func (e *engine) check(inputs property.Map) (p.CheckResponse, error) {
	return e.server.Check(p.CheckRequest{Urn: e.urn, Inputs: inputs})
}

func (e *engine) checked(inputs property.Map) property.Map {
	e.t.Helper()
	response, err := e.check(inputs)
	if err != nil || len(response.Failures) > 0 {
		e.t.Fatalf("check refused: %v %v", err, response.Failures)
	}
	return response.Inputs
}

func (e *engine) tryCreate(inputs property.Map) (deployed, error) {
	e.t.Helper()
	inputs = e.checked(inputs)
	response, err := e.server.Create(p.CreateRequest{Urn: e.urn, Properties: inputs})
	return deployed{id: response.ID, inputs: inputs, state: response.Properties}, err
}

func (e *engine) create(inputs property.Map) deployed {
	e.t.Helper()
	made, err := e.tryCreate(inputs)
	if err != nil {
		e.t.Fatal(err)
	}
	return made
}

func (e *engine) diff(made deployed, inputs property.Map) p.DiffResponse {
	e.t.Helper()
	response, err := e.server.Diff(p.DiffRequest{
		ID: made.id, Urn: e.urn, State: made.state,
		OldInputs: made.inputs, Inputs: e.checked(inputs),
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return response
}

func (e *engine) update(made deployed, inputs property.Map) deployed {
	e.t.Helper()
	inputs = e.checked(inputs)
	response, err := e.server.Update(p.UpdateRequest{
		ID: made.id, Urn: e.urn, State: made.state, OldInputs: made.inputs, Inputs: inputs,
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return deployed{id: made.id, inputs: inputs, state: response.Properties}
}

func (e *engine) delete(made deployed) {
	e.t.Helper()
	err := e.server.Delete(p.DeleteRequest{
		ID: made.id, Urn: e.urn, Properties: made.state, OldInputs: made.inputs,
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

func (d deployed) output(name string) string { return d.state.Get(name).AsString() }

func text(value string) property.Value { return property.New(value) }

func props(pairs map[string]property.Value) property.Map { return property.NewMap(pairs) }

// with returns the properties with some replaced or added.
func with(base property.Map, pairs map[string]property.Value) property.Map {
	for name, value := range pairs {
		base = base.Set(name, value)
	}
	return base
}

// connection is what the Python SDK sends: every field that has a default is filled in.
func (h host) connection() property.Map {
	return props(map[string]property.Value{
		"host": text("127.0.0.1"), "port": property.New(float64(h.port)), "user": text(h.user),
		"privateKey":     text(h.privateKey),
		"dialErrorLimit": property.New(10.0), "perDialTimeout": property.New(15.0),
	})
}

func (h host) inputs(pairs map[string]property.Value) property.Map {
	secret := property.New(h.connection()).WithSecret(true)
	return with(props(map[string]property.Value{"connection": secret}), pairs)
}

// shown collects what the plugin shows while the test runs.
func shown(t *testing.T) func() string {
	t.Helper()
	var buffer lockedBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&buffer, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return buffer.String
}

type lockedBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

func createRequest(e *engine, inputs property.Map) p.CreateRequest {
	return p.CreateRequest{Urn: e.urn, Properties: inputs}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

const remoteCommand = "command:remote:Command"

func TestARemoteCommandIsCreatedUpdatedAndDeleted(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	gone := filepath.Join(t.TempDir(), "gone")
	made := e.create(h.inputs(map[string]property.Value{
		"create": text("echo made; echo noted >&2"), "update": text("echo changed"),
		"delete": text("touch " + gone),
	}))
	if made.output("stdout") != "made" || made.output("stderr") != "noted" || made.id == "" {
		t.Fatalf("created as %q with %v", made.id, made.state)
	}
	changed := e.update(made, with(made.inputs, map[string]property.Value{"stdin": text("new")}))
	if changed.output("stdout") != "changed" {
		t.Fatalf("updated to %q", changed.output("stdout"))
	}
	e.delete(changed)
	if _, err := os.Stat(gone); err != nil {
		t.Fatal("the delete command did not run")
	}
}

func TestWithoutAnUpdateCommandTheCreateCommandRunsAgain(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	made := e.create(h.inputs(map[string]property.Value{"create": text("cat"), "stdin": text("a")}))
	changed := e.update(made, with(made.inputs, map[string]property.Value{"stdin": text("b")}))
	if changed.output("stdout") != "b" {
		t.Fatalf("updated to %q", changed.output("stdout"))
	}
}

func TestAPreviewRunsNothing(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	mark := filepath.Join(t.TempDir(), "mark")
	inputs := e.checked(h.inputs(map[string]property.Value{"create": text("touch " + mark)}))
	_, err := e.server.Create(p.CreateRequest{Urn: e.urn, Properties: inputs, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Fatal("the preview ran the command")
	}
}

func TestAChangedTriggerReplacesAndAChangedCommandUpdates(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	one := property.New(property.NewArray([]property.Value{text("one")}))
	two := property.New(property.NewArray([]property.Value{text("two")}))
	made := e.create(h.inputs(map[string]property.Value{"create": text("true"), "triggers": one}))
	for name, want := range map[string]struct {
		change map[string]property.Value
		kind   p.DiffKind
	}{
		"trigger": {map[string]property.Value{"triggers": two}, p.UpdateReplace},
		"command": {map[string]property.Value{"create": text("false")}, p.Update},
	} {
		diff := e.diff(made, with(made.inputs, want.change))
		for _, found := range diff.DetailedDiff {
			if found.Kind != want.kind {
				t.Errorf("a changed %s is %q", name, found.Kind)
			}
		}
		if !diff.HasChanges || len(diff.DetailedDiff) != 1 {
			t.Errorf("a changed %s shows as %v", name, diff)
		}
	}
	if e.diff(made, made.inputs).HasChanges {
		t.Error("unchanged inputs show a change")
	}
}

func TestTheEnvironmentReachesTheCommand(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	made := e.create(h.inputs(map[string]property.Value{
		"create":      text("echo $GREETING"),
		"environment": property.New(props(map[string]property.Value{"GREETING": text("ahoy")})),
	}))
	if made.output("stdout") != "ahoy" {
		t.Fatalf("the command saw %q", made.output("stdout"))
	}
}

func TestARefusedVariableIsNamedWithoutItsValue(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	_, err := e.tryCreate(h.inputs(map[string]property.Value{
		"create":      text("true"),
		"environment": property.New(props(map[string]property.Value{"TOKEN": text("hunter2")})),
	}))
	if err == nil || !strings.Contains(err.Error(), "TOKEN") ||
		!strings.Contains(err.Error(), "AcceptEnv") || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("refused with: %v", err)
	}
}

func TestThePreviousOutputIsPassedOnUnlessItIsNotWanted(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	base := h.inputs(map[string]property.Value{
		"create": text("echo first"), "update": text("echo [$PULUMI_COMMAND_STDOUT]"),
	})
	made := e.create(base)
	for wanted, seen := range map[bool]string{true: "[first]", false: "[]"} {
		changed := e.update(made, with(base, map[string]property.Value{
			"addPreviousOutputInEnv": property.New(wanted),
		}))
		if changed.output("stdout") != seen {
			t.Errorf("addPreviousOutputInEnv=%v: saw %q", wanted, changed.output("stdout"))
		}
	}
}

func TestLoggingChoosesTheStreamsThatAreShown(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	for logging, want := range map[string][2]bool{
		"": {true, true}, "stdout": {true, false}, "stderr": {false, true},
		"stdoutAndStderr": {true, true}, "none": {false, false},
	} {
		log := shown(t)
		inputs := h.inputs(map[string]property.Value{
			"create": text("echo to-stdout; echo to-stderr >&2"),
		})
		if logging != "" {
			inputs = inputs.Set("logging", text(logging))
		}
		made := e.create(inputs)
		seen := [2]bool{
			strings.Contains(log(), "to-stdout"), strings.Contains(log(), "to-stderr"),
		}
		if seen != want {
			t.Errorf("logging %q showed stdout, stderr: %v", logging, seen)
		}
		if made.output("stdout") != "to-stdout" || made.output("stderr") != "to-stderr" {
			t.Errorf("logging %q changed the outputs", logging)
		}
	}
}

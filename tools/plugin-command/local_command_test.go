package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

const localCommand = "command:local:Command"

func TestALocalCommandTakesItsInputAndDirectoryAndEnvironment(t *testing.T) {
	e, folder := newEngine(t, localCommand), t.TempDir()
	made := e.create(props(map[string]property.Value{
		"create": text("cat; pwd; echo $GREETING"), "stdin": text("typed\n"), "dir": text(folder),
		"environment": property.New(props(map[string]property.Value{"GREETING": text("ahoy")})),
	}))
	if made.output("stdout") != "typed\n"+folder+"\nahoy" {
		t.Fatalf("it said %q", made.output("stdout"))
	}
}

func TestALocalCommandSeesItsPreviousOutputWhenItIsDeleted(t *testing.T) {
	e, mark := newEngine(t, localCommand), filepath.Join(t.TempDir(), "mark")
	made := e.create(props(map[string]property.Value{
		"create": text("echo made"), "delete": text("echo $PULUMI_COMMAND_STDOUT > " + mark),
	}))
	e.delete(made)
	if read(t, mark) != "made\n" {
		t.Fatalf("the delete command saw %q", read(t, mark))
	}
}

func TestALocalCommandCanBeRunByAnotherInterpreter(t *testing.T) {
	e := newEngine(t, localCommand)
	made := e.create(props(map[string]property.Value{
		"create":      text("print(6 * 7)"),
		"interpreter": property.New(property.NewArray([]property.Value{text("python3"), text("-c")})),
	}))
	if made.output("stdout") != "42" {
		t.Fatalf("it said %q", made.output("stdout"))
	}
}

func TestAFailedLocalCommandShowsNoSecret(t *testing.T) {
	e := newEngine(t, localCommand)
	_, err := e.tryCreate(props(map[string]property.Value{
		"create": text("cat >&2; exit 3"), "stdin": text("s3cr3t-input"),
	}))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Fatalf("the error says: %v", err)
	}
	holdsNone(t, err.Error(), "s3cr3t-input")
}

func TestTheFilesThatAreAskedForAreReturned(t *testing.T) {
	e, folder := newEngine(t, localCommand), t.TempDir()
	globs := property.New(property.NewArray([]property.Value{text("*.txt"), text("!secret*")}))
	made := e.create(props(map[string]property.Value{
		"create": text("touch a.txt secret.txt b.md"), "dir": text(folder),
		"assetPaths": globs, "archivePaths": globs,
	}))
	assets := made.state.Get("assets").AsMap()
	if _, ok := assets.GetOk("a.txt"); !ok || assets.Len() != 1 {
		t.Fatalf("returned %v", assets)
	}
	packed := made.state.Get("archive").AsMap().Get("assets").AsMap()
	if _, ok := packed.GetOk("a.txt"); !ok || packed.Len() != 1 {
		t.Fatalf("packed %v", packed)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

const copyToRemote = "command:remote:CopyToRemote"

func fileAsset(t *testing.T, path string) property.Value {
	t.Helper()
	asset, err := resource.NewPathAsset(path)
	if err != nil {
		t.Fatal(err)
	}
	return property.New(asset)
}

func fileArchive(t *testing.T, path string) property.Value {
	t.Helper()
	archive, err := resource.NewPathArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	return property.New(archive)
}

func textAsset(t *testing.T, content string) property.Value {
	t.Helper()
	asset, err := resource.NewTextAsset(content)
	if err != nil {
		t.Fatal(err)
	}
	return property.New(asset)
}

func TestAFileIsCopiedAndCopiedAgainWhenItsContentChanges(t *testing.T) {
	h, e := startSshd(t), newEngine(t, copyToRemote)
	folder := t.TempDir()
	source, dest := filepath.Join(folder, "unit.service"), filepath.Join(folder, "copied")
	write(t, source, "first")
	made := e.create(h.inputs(map[string]property.Value{
		"source": fileAsset(t, source), "remotePath": text(dest),
	}))
	if read(t, dest) != "first" {
		t.Fatalf("copied %q", read(t, dest))
	}
	write(t, source, "second")
	e.update(made, with(made.inputs, map[string]property.Value{"source": fileAsset(t, source)}))
	if read(t, dest) != "second" {
		t.Fatalf("copied %q", read(t, dest))
	}
}

func TestAFileGoesIntoAnExistingDirectory(t *testing.T) {
	h, e := startSshd(t), newEngine(t, copyToRemote)
	source, dest := filepath.Join(t.TempDir(), "a.txt"), t.TempDir()
	write(t, source, "in")
	e.create(h.inputs(map[string]property.Value{
		"source": fileAsset(t, source), "remotePath": text(dest),
	}))
	if read(t, filepath.Join(dest, "a.txt")) != "in" {
		t.Fatal("it is not in the directory")
	}
}

func TestADirectoryIsCopiedAsAWholeAndWithASlashItsContentAlone(t *testing.T) {
	h, e := startSshd(t), newEngine(t, copyToRemote)
	source := filepath.Join(t.TempDir(), "entry")
	if err := os.MkdirAll(filepath.Join(source, "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(source, "config.pbtxt"), "backend")
	write(t, filepath.Join(source, "1", "model.json"), "{}")
	for given, inside := range map[string]string{source: "entry", source + "/": ""} {
		dest := filepath.Join(t.TempDir(), "models")
		e.create(h.inputs(map[string]property.Value{
			"source": fileArchive(t, given), "remotePath": text(dest),
		}))
		if read(t, filepath.Join(dest, inside, "1", "model.json")) != "{}" {
			t.Errorf("%s: the nested file is missing", given)
		}
	}
}

func TestATextIsWrittenToAFileAndNotShownWhenItFails(t *testing.T) {
	h, e := startSshd(t), newEngine(t, copyToRemote)
	dest := filepath.Join(t.TempDir(), "key")
	e.create(h.inputs(map[string]property.Value{
		"source": textAsset(t, "s3cr3t-text").WithSecret(true), "remotePath": text(dest),
	}))
	if read(t, dest) != "s3cr3t-text" {
		t.Fatalf("wrote %q", read(t, dest))
	}
	_, err := e.tryCreate(h.inputs(map[string]property.Value{
		"source": textAsset(t, "s3cr3t-text"), "remotePath": text("/nowhere/s3cr3t-text"),
	}))
	if err == nil || strings.Contains(err.Error(), "s3cr3t-text") {
		t.Fatalf("the error says: %v", err)
	}
}

func TestADirectoryIsNotCopiedOntoAFile(t *testing.T) {
	h, e := startSshd(t), newEngine(t, copyToRemote)
	source, dest := t.TempDir(), filepath.Join(t.TempDir(), "file")
	write(t, dest, "kept")
	_, err := e.tryCreate(h.inputs(map[string]property.Value{
		"source": fileArchive(t, source), "remotePath": text(dest),
	}))
	if err == nil || !strings.Contains(err.Error(), "is a file on the host") {
		t.Fatalf("the error says: %v", err)
	}
}

func TestAChangedTriggerCopiesAgain(t *testing.T) {
	h, e := startSshd(t), newEngine(t, copyToRemote)
	list := func(value string) property.Value {
		return property.New(property.NewArray([]property.Value{text(value)}))
	}
	made := e.create(h.inputs(map[string]property.Value{
		"source":     textAsset(t, "same"),
		"remotePath": text(filepath.Join(t.TempDir(), "file")), "triggers": list("one"),
	}))
	diff := e.diff(made, with(made.inputs, map[string]property.Value{"triggers": list("two")}))
	for _, found := range diff.DetailedDiff {
		if found.Kind != p.UpdateReplace {
			t.Errorf("a changed trigger is %q", found.Kind)
		}
	}
	if len(diff.DetailedDiff) != 1 {
		t.Errorf("a changed trigger shows as %v", diff)
	}
}

func TestTheOlderCopyFileCopiesAFile(t *testing.T) {
	h, e := startSshd(t), newEngine(t, "command:remote:CopyFile")
	source, dest := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	write(t, source, "same")
	e.create(h.inputs(map[string]property.Value{
		"localPath": text(source), "remotePath": text(dest),
	}))
	if read(t, dest) != "same" {
		t.Fatal("it was not copied")
	}
}

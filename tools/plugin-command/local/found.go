package local

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gobwas/glob"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// find leaves the files that the globs name in the state, under their paths below the directory.
func (c *CommandOutputs) find() error {
	folder := "."
	if c.Dir != nil {
		folder = *c.Dir
	}
	if c.AssetPaths != nil {
		assets, err := matching(folder, c.AssetPaths)
		if err != nil {
			return err
		}
		c.Assets = &assets
	}
	if c.ArchivePaths == nil {
		return nil
	}
	files, err := matching(folder, c.ArchivePaths)
	if err != nil {
		return err
	}
	packed := map[string]any{}
	for path, file := range files {
		packed[path] = file
	}
	c.Archive, err = resource.NewAssetArchive(packed)
	return err
}

// matching applies the globs in order: a later one may take out what an earlier one put in.
func matching(folder string, globs []string) (map[string]*resource.Asset, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	found := map[string]*resource.Asset{}
	for _, pattern := range globs {
		wanted, excludes := strings.CutPrefix(pattern, "!")
		rule, err := glob.Compile(wanted, '/')
		if err != nil {
			return nil, fmt.Errorf("the glob %q cannot be read: %w", pattern, err)
		}
		err = fs.WalkDir(os.DirFS(absolute), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !rule.Match(path) {
				return err
			}
			if excludes {
				delete(found, path)
				return nil
			}
			found[path], err = resource.NewPathAsset(filepath.Join(absolute, path))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pkg/sftp"
)

// upload writes files on the other host over SFTP.
type upload struct{ client *sftp.Client }

func openUpload(ctx context.Context, connection *Connection) (*upload, func(), error) {
	client, closeClient, err := connection.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	files, err := sftp.NewClient(client, sftp.UseConcurrentWrites(true))
	if err != nil {
		closeClient()
		return nil, nil, fmt.Errorf("%s offers no SFTP: %w. Its sshd_config needs "+
			"\"Subsystem sftp internal-sftp\"", connection.Host, err)
	}
	return &upload{files}, func() { _ = files.Close(); closeClient() }, nil
}

// path copies a local file or directory, to the documented place:
//
//	source | an existing directory | nothing there | an existing file
//	dir    | dest/dir              | dest/dir      | refused
//	dir/   | dest                  | dest          | refused
//	file   | dest/file             | dest          | dest, overwritten
func (u *upload) path(source, dest string) error {
	local, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("the source cannot be read: %w", err)
	}
	there, err := u.stat(dest)
	if err != nil {
		return err
	}
	if !local.IsDir() {
		if there != nil && there.IsDir() {
			dest = path.Join(dest, filepath.Base(source))
		}
		return u.file(source, dest)
	}
	if err := u.directory(dest); err != nil {
		return err
	}
	if !strings.HasSuffix(source, "/") {
		dest = path.Join(dest, filepath.Base(source))
	}
	return u.tree(source, dest)
}

func (u *upload) tree(source, dest string) error {
	return filepath.WalkDir(source, func(found string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("the source cannot be read: %w", err)
		}
		relative, err := filepath.Rel(source, found)
		if err != nil {
			return err
		}
		place := path.Join(dest, filepath.ToSlash(relative))
		if entry.IsDir() {
			return u.directory(place)
		}
		return u.file(found, place)
	})
}

func (u *upload) directory(dest string) error {
	there, err := u.stat(dest)
	if err != nil || there != nil && there.IsDir() {
		return err
	}
	if there != nil {
		return fmt.Errorf("%s is a file on the host: a directory cannot be copied onto it", dest)
	}
	if err := u.client.Mkdir(dest); err != nil {
		return fmt.Errorf("the directory %s cannot be made on the host: %w", dest, err)
	}
	return nil
}

func (u *upload) file(source, dest string) error {
	local, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("the source cannot be read: %w", err)
	}
	defer func() { _ = local.Close() }()
	return u.write(local, dest)
}

func (u *upload) text(content, dest string) error {
	there, err := u.stat(dest)
	if err != nil {
		return err
	}
	if there != nil && there.IsDir() {
		return fmt.Errorf("%s is a directory on the host: a text needs a file's path", dest)
	}
	return u.write(strings.NewReader(content), dest)
}

func (u *upload) write(content io.Reader, dest string) error {
	remote, err := u.client.Create(dest)
	if err != nil {
		return fmt.Errorf("the file %s cannot be made on the host: %w", dest, err)
	}
	_, err = remote.ReadFrom(content)
	// A full disk may show only when the file is closed.
	if closed := remote.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("the file %s was not written in full: %w", dest, err)
	}
	return nil
}

func (u *upload) stat(dest string) (fs.FileInfo, error) {
	info, err := u.client.Stat(dest)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be looked at on the host: %w", dest, err)
	}
	return info, nil
}

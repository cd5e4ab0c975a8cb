package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// host is a real OpenSSH server on a loopback port, and what is needed to reach it.
type host struct {
	port       int
	user       string
	privateKey string
	hostKey    string
}

func startSshd(t *testing.T) host {
	t.Helper()
	daemon, err := exec.LookPath("sshd")
	if err != nil {
		// Debian keeps it in a directory that a plain user's PATH lacks.
		daemon = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(daemon); err != nil {
		t.Fatal("These tests need OpenSSH's server. On Debian: apt-get install openssh-server")
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	hostPrivate, hostPublic := keyPair(t)
	clientPrivate, clientPublic := keyPair(t)
	write(t, filepath.Join(folder, "host_key"), hostPrivate)
	write(t, filepath.Join(folder, "authorized_keys"), clientPublic)
	port := freePort(t)
	config := fmt.Sprintf(`ListenAddress 127.0.0.1:%d
HostKey %s/host_key
AuthorizedKeysFile %s/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
AcceptEnv GREETING PULUMI_COMMAND_*
AllowTcpForwarding yes
Subsystem sftp internal-sftp
`, port, folder, folder)
	write(t, filepath.Join(folder, "sshd_config"), config)
	var said strings.Builder
	server := exec.Command(daemon, "-D", "-e", "-f", filepath.Join(folder, "sshd_config"))
	server.Stderr = &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log("sshd said:\n" + said.String())
		}
	})
	awaitPort(t, port)
	return host{port: port, user: me.Username, privateKey: clientPrivate, hostKey: hostPublic}
}

func keyPair(t *testing.T) (private, public string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

func awaitPort(t *testing.T, port int) {
	t.Helper()
	for range 100 {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("sshd did not listen within 5 s")
}

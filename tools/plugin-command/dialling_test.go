package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

func (h host) reachedBy(changes map[string]property.Value) property.Map {
	return h.inputs(map[string]property.Value{
		"connection": property.New(with(h.connection(), changes)).WithSecret(true),
		"create":     text("echo there"),
	})
}

func TestTheExpectedHostKeyIsAccepted(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	made := e.create(h.reachedBy(map[string]property.Value{"hostKey": text(h.hostKey)}))
	if made.output("stdout") != "there" {
		t.Fatalf("got %q", made.output("stdout"))
	}
}

func TestAnotherHostKeyIsRefusedAtOnce(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	_, other := keyPair(t)
	started := time.Now()
	_, err := e.tryCreate(h.reachedBy(map[string]property.Value{"hostKey": text(other)}))
	if err == nil || !strings.Contains(err.Error(), "not the host that was expected") {
		t.Fatalf("the error says: %v", err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("a refused key was tried again for %s", took)
	}
}

func TestAHostKeyThatCannotBeReadIsRefused(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	_, err := e.tryCreate(h.reachedBy(map[string]property.Value{"hostKey": text("SHA256:abc")}))
	if err == nil || !strings.Contains(err.Error(), "hostKey cannot be read") {
		t.Fatalf("the error says: %v", err)
	}
}

func TestARefusedConnectionIsGivenUpAfterTheDialErrorLimit(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	started := time.Now()
	_, err := e.tryCreate(h.reachedBy(map[string]property.Value{
		"port": property.New(float64(freePort(t))), "dialErrorLimit": property.New(2.0),
	}))
	if err == nil || !strings.Contains(err.Error(), "after 3 failed attempts") {
		t.Fatalf("the error says: %v", err)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("two retries took %s", took)
	}
}

func TestAHostThatAcceptsAndSaysNothingEndsWithThePerDialTimeout(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	started := time.Now()
	_, err = e.tryCreate(h.reachedBy(map[string]property.Value{
		"port":           property.New(float64(mute.Addr().(*net.TCPAddr).Port)),
		"dialErrorLimit": property.New(0.0), "perDialTimeout": property.New(1.0),
	}))
	if err == nil || !strings.Contains(err.Error(), "no SSH handshake within 1s") {
		t.Fatalf("the error says: %v", err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("one dial of 1 s took %s", took)
	}
}

func TestAProxyCarriesTheConnection(t *testing.T) {
	h, between, e := startSshd(t), startSshd(t), newEngine(t, remoteCommand)
	proxy := between.connection().Set("hostKey", text(between.hostKey))
	made := e.create(h.reachedBy(map[string]property.Value{
		"proxy": property.New(proxy), "hostKey": text(h.hostKey),
	}))
	if made.output("stdout") != "there" {
		t.Fatalf("got %q", made.output("stdout"))
	}
	_, err := e.tryCreate(h.reachedBy(map[string]property.Value{
		"proxy": property.New(proxy.Set("hostKey", text(h.hostKey))),
	}))
	if err == nil || !strings.HasPrefix(err.Error(), "proxy: ") {
		t.Fatalf("a proxy with another key: %v", err)
	}
}

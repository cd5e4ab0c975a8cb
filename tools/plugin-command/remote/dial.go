package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
)

type dialer func(ctx context.Context, address string) (net.Conn, error)

// dial connects, through the proxy if there is one, and closes with the context.
func (c *Connection) dial(ctx context.Context) (*ssh.Client, func(), error) {
	var closers []func()
	closeAll := func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
	through := dialer(func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	})
	if c.Proxy != nil {
		proxy, closeProxy, err := c.Proxy.client(ctx, "Dial proxy", through)
		if err != nil {
			return nil, nil, fmt.Errorf("proxy: %w", err)
		}
		closers = append(closers, closeProxy)
		through = func(ctx context.Context, address string) (net.Conn, error) {
			return proxy.DialContext(ctx, "tcp", address)
		}
	}
	client, closeClient, err := c.client(ctx, "Dial", through)
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	closers = append(closers, closeClient)
	// A cancelled update must not wait for a command that never ends.
	stop := context.AfterFunc(ctx, closeAll)
	return client, func() { stop(); closeAll() }, nil
}

func (e *endpoint) client(
	ctx context.Context, what string, through dialer,
) (*ssh.Client, func(), error) {
	config, release, err := e.config()
	if err != nil {
		return nil, nil, err
	}
	address := net.JoinHostPort(e.Host, strconv.Itoa(e.port()))
	client, err := retried(ctx, what, valueOr(e.DialErrorLimit, defaultDialErrorLimit),
		func() (*ssh.Client, error) { return attempt(ctx, through, address, config) })
	if err != nil {
		release()
		var stranger *strangerError
		if errors.As(err, &stranger) {
			return nil, nil, stranger
		}
		return nil, nil, fmt.Errorf("%s@%s was not reached: %w", config.User, address, err)
	}
	return client, func() { _ = client.Close(); release() }, nil
}

func (e *endpoint) config() (*ssh.ClientConfig, func(), error) {
	check, algorithms, err := e.hostKeyCheck()
	if err != nil {
		return nil, nil, err
	}
	methods, release, err := e.authentication()
	if err != nil {
		return nil, nil, err
	}
	return &ssh.ClientConfig{
		User:              valueOr(e.User, defaultUser),
		Auth:              methods,
		HostKeyCallback:   check,
		HostKeyAlgorithms: algorithms,
		Timeout:           time.Duration(valueOr(e.PerDialTimeout, defaultPerDialTimeout)) * time.Second,
	}, release, nil
}

func (e *endpoint) port() int {
	return int(valueOr(e.Port, defaultPort))
}

// attempt bounds the whole dial: a host that accepts and then says nothing counts as failed.
func attempt(
	ctx context.Context, through dialer, address string, config *ssh.ClientConfig,
) (*ssh.Client, error) {
	if config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, config.Timeout)
		defer cancel()
	}
	conn, err := through(ctx, address)
	if err != nil {
		return nil, err
	}
	// Closing is what ends a handshake: a channel through a proxy has no deadlines.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	secured, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("no SSH handshake within %s", config.Timeout)
		}
		return nil, err
	}
	return ssh.NewClient(secured, channels, requests), nil
}

func valueOr[T any](value *T, unset T) T {
	if value == nil {
		return unset
	}
	return *value
}

// Package remote runs commands on another host, and copies files to it, over SSH.
package remote

import (
	"github.com/pulumi/pulumi-go-provider/infer"
)

const (
	defaultUser           = "root"
	defaultPort           = 22
	defaultDialErrorLimit = 10
	defaultPerDialTimeout = 15
)

// endpoint has every field that the SDK sends, for the host and for the proxy alike.
type endpoint struct {
	Host               string   `pulumi:"host"`
	User               *string  `pulumi:"user,optional"`
	Port               *float64 `pulumi:"port,optional"`
	Password           *string  `pulumi:"password,optional"           provider:"secret"`
	PrivateKey         *string  `pulumi:"privateKey,optional"         provider:"secret"`
	PrivateKeyPassword *string  `pulumi:"privateKeyPassword,optional" provider:"secret"`
	AgentSocketPath    *string  `pulumi:"agentSocketPath,optional"`
	HostKey            *string  `pulumi:"hostKey,optional"`
	DialErrorLimit     *int     `pulumi:"dialErrorLimit,optional"`
	PerDialTimeout     *int     `pulumi:"perDialTimeout,optional"`
}

// Connection is how a host is reached.
type Connection struct {
	endpoint
	Proxy *ProxyConnection `pulumi:"proxy,optional"`
}

// ProxyConnection is how the host in between is reached.
type ProxyConnection struct{ endpoint }

// Annotate documents the fields and sets their defaults.
func (c *Connection) Annotate(a infer.Annotator) {
	a.Describe(&c, "Instructions for how to connect to a remote endpoint.")
	c.endpoint.annotate(a)
	a.Describe(&c.Proxy, "The connection settings for the bastion/proxy host.")
}

// Annotate documents the fields and sets their defaults.
func (c *ProxyConnection) Annotate(a infer.Annotator) {
	a.Describe(&c, "Instructions for how to connect to a remote endpoint via a bastion host.")
	c.endpoint.annotate(a)
}

func (e *endpoint) annotate(a infer.Annotator) {
	a.Describe(&e.Host, "The address to connect to.")
	a.Describe(&e.User, "The user to connect as.")
	a.SetDefault(&e.User, defaultUser)
	a.Describe(&e.Port, "The port to connect to. Defaults to 22.")
	a.SetDefault(&e.Port, defaultPort)
	a.Describe(&e.Password, "The password to use for the connection.")
	a.Describe(&e.PrivateKey, "The contents of an SSH key. Used before the password.")
	a.Describe(&e.PrivateKeyPassword, "The password of an encrypted private key.")
	a.Describe(&e.AgentSocketPath, "SSH agent socket path. Defaults to SSH_AUTH_SOCK if present.")
	a.Describe(&e.HostKey, "The host key that the server must show. If unset, any is accepted.")
	a.Describe(&e.DialErrorLimit, "Max failed dials; -1 is unlimited. Defaults to 10.")
	a.SetDefault(&e.DialErrorLimit, defaultDialErrorLimit)
	a.Describe(&e.PerDialTimeout, "Max seconds for each dial; 0 is no maximum. Defaults to 15.")
	a.SetDefault(&e.PerDialTimeout, defaultPerDialTimeout)
}

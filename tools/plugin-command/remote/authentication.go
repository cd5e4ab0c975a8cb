package remote

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// authentication is what the endpoint offers, in the published order: key, password, agent.
// The returned function closes the agent's socket.
func (e *endpoint) authentication() ([]ssh.AuthMethod, func(), error) {
	var methods []ssh.AuthMethod
	nothing := func() {}
	if e.PrivateKey != nil {
		signer, err := e.signer()
		if err != nil {
			return nil, nothing, err
		}
		methods = append(methods, ssh.PublicKeys(signer))
	}
	if e.Password != nil {
		methods = append(methods, ssh.Password(*e.Password), ssh.KeyboardInteractive(e.answers))
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if e.AgentSocketPath != nil {
		socket = *e.AgentSocketPath
	}
	if socket == "" {
		return methods, nothing, nil
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, nothing, fmt.Errorf("the SSH agent at %s does not answer: %w. Start it, or "+
			"unset SSH_AUTH_SOCK or agentSocketPath", socket, err)
	}
	methods = append(methods, ssh.PublicKeysCallback(agent.NewClient(conn).Signers))
	return methods, func() { _ = conn.Close() }, nil
}

func (e *endpoint) signer() (ssh.Signer, error) {
	key := []byte(*e.PrivateKey)
	if e.PrivateKeyPassword == nil {
		signer, err := ssh.ParsePrivateKey(key)
		var locked *ssh.PassphraseMissingError
		if errors.As(err, &locked) {
			return nil, errors.New("the private key is encrypted. Set privateKeyPassword")
		}
		return signer, unreadable(err)
	}
	signer, err := ssh.ParsePrivateKeyWithPassphrase(key, []byte(*e.PrivateKeyPassword))
	return signer, unreadable(err)
}

func unreadable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the private key cannot be read: %w. privateKey must be the key's "+
		"contents, not its path", err)
}

func (e *endpoint) answers(_, _ string, questions []string, _ []bool) ([]string, error) {
	answers := make([]string, len(questions))
	for i := range questions {
		answers[i] = *e.Password
	}
	return answers, nil
}

package remote

import (
	"bytes"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
)

// strangerError ends the dialling: another try would meet the same host.
type strangerError struct{ host, expected, shown string }

func (e *strangerError) Error() string {
	return fmt.Sprintf("%s is not the host that was expected: its key is %s, hostKey is %s. "+
		"Nothing was run there. Correct hostKey if the host was reinstalled; otherwise find out "+
		"who answers", e.host, e.shown, e.expected)
}

// hostKeyCheck refuses any host but the expected one. Unset accepts any, as published.
func (e *endpoint) hostKeyCheck() (ssh.HostKeyCallback, []string, error) {
	if e.HostKey == nil {
		return ssh.InsecureIgnoreHostKey(), nil, nil
	}
	expected, _, _, _, err := ssh.ParseAuthorizedKey([]byte(*e.HostKey))
	if err != nil {
		return nil, nil, fmt.Errorf("hostKey cannot be read: %w. It is a line like "+
			"\"ssh-ed25519 AAAA…\", as in the host's /etc/ssh/ssh_host_ed25519_key.pub", err)
	}
	check := func(host string, _ net.Addr, shown ssh.PublicKey) error {
		if bytes.Equal(shown.Marshal(), expected.Marshal()) {
			return nil
		}
		return &strangerError{
			host: host, expected: ssh.FingerprintSHA256(expected), shown: ssh.FingerprintSHA256(shown),
		}
	}
	return check, algorithms(expected.Type()), nil
}

// algorithms makes the host show its key of the expected type: it has several.
func algorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

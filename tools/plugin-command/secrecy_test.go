package main

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

func keyLine(h host) string { return strings.Split(h.privateKey, "\n")[1] }

func holdsNone(t *testing.T, said string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(said, secret) {
			t.Errorf("%q stands in: %s", secret, said)
		}
	}
}

func TestAFailedCommandShowsItsStatusAndStderrAndNoSecret(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	log := shown(t)
	_, err := e.tryCreate(h.inputs(map[string]property.Value{
		"create": text("true --token s3cr3t-token; cat; echo said $GREETING no >&2; exit 7").
			WithSecret(true),
		"stdin":       text("s3cr3t-input"),
		"environment": property.New(props(map[string]property.Value{"GREETING": text("s3cr3t-env")})),
	}))
	if err == nil {
		t.Fatal("exit status 7 passed")
	}
	said := err.Error()
	if !strings.Contains(said, "exit status 7") || !strings.Contains(said, "said [secret] no") {
		t.Errorf("the error says: %s", said)
	}
	holdsNone(t, said+log(), "s3cr3t", keyLine(h))
}

func TestAPublicCommandIsShownWithItsSecretInputsMasked(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	_, err := e.tryCreate(h.inputs(map[string]property.Value{
		"create": text("echo s3cr3t-input | systemctl nonsense"), "stdin": text("s3cr3t-input"),
	}))
	if err == nil || !strings.Contains(err.Error(), "echo [secret] | systemctl nonsense") {
		t.Fatalf("the error says: %v", err)
	}
}

func TestAFieldThatIsNotKnownIsNamedWithoutTheConnection(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	odd := h.connection().Set("portt", property.New(22.0)).Set("password", text("s3cr3t-word"))
	proxied := h.connection().Set("proxy", property.New(odd))
	for where, inputs := range map[string]property.Map{
		"portt": h.inputs(map[string]property.Value{"connection": property.New(odd)}),
		"proxy": h.inputs(map[string]property.Value{"connection": property.New(proxied)}),
		"creat": h.inputs(map[string]property.Value{"creat": text("true")}),
	} {
		response, err := e.check(inputs)
		said := ""
		if err != nil {
			said = err.Error()
		}
		for _, failure := range response.Failures {
			if failure.Property != "" {
				t.Errorf("the engine would print the value of %s", failure.Property)
			}
			said += failure.Reason + "\n"
		}
		if !strings.Contains(said, where) {
			t.Errorf("%s is not named in: %s", where, said)
		}
		holdsNone(t, said, keyLine(h), "s3cr3t-word", "PRIVATE KEY")
		_, err = e.server.Create(createRequest(e, inputs))
		if err == nil {
			t.Errorf("%s was accepted", where)
		} else {
			holdsNone(t, err.Error(), keyLine(h), "s3cr3t-word", "PRIVATE KEY")
		}
	}
}

func TestACredentialOfTheWrongTypeIsNotShown(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	list := property.New(property.NewArray([]property.Value{text("s3cr3t-word")}))
	odd := h.connection().Set("password", list)
	response, err := e.check(h.inputs(map[string]property.Value{"connection": property.New(odd)}))
	said := ""
	if err != nil {
		said = err.Error()
	}
	for _, failure := range response.Failures {
		said += failure.Reason
	}
	if said == "" {
		t.Fatal("a list was accepted as a password")
	}
	holdsNone(t, said, keyLine(h), "s3cr3t-word")
}

func TestAKeyThatCannotBeReadIsNotShown(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	odd := h.connection().Set("privateKey", text("s3cr3t-key"))
	_, err := e.tryCreate(h.inputs(map[string]property.Value{
		"connection": property.New(odd), "create": text("true"),
	}))
	if err == nil || !strings.Contains(err.Error(), "private key cannot be read") {
		t.Fatalf("the error says: %v", err)
	}
	holdsNone(t, err.Error(), "s3cr3t-key")
}

func TestTheConnectionIsSecretInTheStateAndPlainOutputIsNot(t *testing.T) {
	h, e := startSshd(t), newEngine(t, remoteCommand)
	made := e.create(h.inputs(map[string]property.Value{"create": text("echo plain")}))
	if !made.state.Get("connection").Secret() {
		t.Error("the connection is not secret")
	}
	if made.state.Get("stdout").Secret() {
		t.Error("stdout is secret though no input but the connection is")
	}
}

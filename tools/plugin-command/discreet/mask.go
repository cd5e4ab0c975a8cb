// Package discreet keeps secret inputs out of everything that the plugin says.
package discreet

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

const hidden = "[secret]"

// A value of one or two characters protects nothing, and masking it would blot out the text;
// a short line of a longer text ("else", "fi") gives none of it away.
const (
	shortestSecret = 3
	shortestLine   = 8
)

// Mask replaces secrets in a text.
type Mask struct{ secrets []string }

// NewMask also covers each secret's lines and its quoted form: errors print both.
func NewMask(secrets []string) Mask {
	forms := map[string]bool{}
	cover := func(text string, shortest int) {
		text = strings.TrimSpace(text)
		quoted := strconv.Quote(text)
		for _, form := range []string{text, quoted[1 : len(quoted)-1]} {
			if len(form) >= shortest {
				forms[form] = true
			}
		}
	}
	for _, secret := range secrets {
		cover(secret, shortestSecret)
		for line := range strings.Lines(secret) {
			cover(line, shortestLine)
		}
	}
	mask := Mask{}
	for form := range forms {
		mask.secrets = append(mask.secrets, form)
	}
	// The longest first: a secret that holds another must not leave its ends behind.
	slices.SortFunc(mask.secrets, func(a, b string) int { return len(b) - len(a) })
	return mask
}

// Apply returns the text without the secrets.
func (m Mask) Apply(text string) string {
	for _, secret := range m.secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}

type maskKey struct{}

// Of is the mask of the request that the context belongs to.
func Of(ctx context.Context) Mask {
	mask, _ := ctx.Value(maskKey{}).(Mask)
	return mask
}

func with(ctx context.Context, mask Mask) context.Context {
	return context.WithValue(ctx, maskKey{}, mask)
}

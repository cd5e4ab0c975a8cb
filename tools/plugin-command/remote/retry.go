package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/retry"
)

const unlimited = -1

// retried tries with the published backoff: 100 ms, half as much again each time, 5 s at most.
// It gives up after `limit` failures; a refused host key ends it at once.
func retried[T any](
	ctx context.Context, what string, limit int, try func() (T, error),
) (T, error) {
	var none T
	ok, result, err := retry.Until(ctx, retry.Acceptor{
		Accept: func(failures int, _ time.Duration) (bool, any, error) {
			result, err := try()
			if err == nil {
				return true, result, nil
			}
			var stranger *strangerError
			if errors.As(err, &stranger) {
				return true, nil, err
			}
			failures++
			if limit > unlimited && failures > limit {
				return true, nil, fmt.Errorf("after %d failed attempts: %w", failures, err)
			}
			most := fmt.Sprint(limit)
			if limit == unlimited {
				most = "inf"
			}
			p.GetLogger(ctx).InfoStatusf("%s %d/%s failed: retrying", what, failures, most)
			return false, nil, nil
		},
	})
	if err != nil {
		return none, err
	}
	if !ok {
		return none, fmt.Errorf("stopped while it was being dialled: %w", ctx.Err())
	}
	return result.(T), nil
}

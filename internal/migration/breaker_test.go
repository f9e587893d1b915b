// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func webhookUnavailable() error {
	return apierrors.NewInternalError(errors.New(`failed calling webhook "check.example.com": Post "https://check.example.svc:443/": connect: connection refused`))
}

func converterUnavailable() error {
	return apierrors.NewInternalError(errors.New(`conversion webhook for example.com/v1beta1, Kind=CronTab failed: Post "https://converter.example.svc:443/convert?timeout=30s": no endpoints available for service "converter"`))
}

// Everything fails for much longer than one object is tried. The run waits, says why, and
// continues, and no object fails.
func TestOutageFailsNoObject(t *testing.T) {
	for name, away := range map[string]error{
		"admission webhook": webhookUnavailable(), "converter": converterUnavailable(),
		"overloaded": overloaded(1), "etcd": apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
	} {
		for _, concurrency := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, %d in flight", name, concurrency), func(t *testing.T) {
				api, store, clock := newFakeAPI(12), &fakeStore{}, newFakeClock()
				over, shown := clock.Now().Add(30*time.Minute), make(chan struct{})
				store.whenSaved(`"waiting":"patches wait: `, func() { close(shown) })
				trouble := func(string) error {
					if clock.Now().After(over) {
						return nil
					}
					return away
				}
				api.onPatch = trouble
				api.onDryRun = func(key string) error {
					<-shown
					return trouble(key)
				}
				engine := newTestEngine(api, store)
				engine.Clock, engine.Concurrency, engine.PageSize = clock, concurrency, 12
				if record := mustRun(t, engine); !record.Complete() || record.Rewritten != 12 || record.Waiting != "" {
					t.Errorf("record is %+v", record)
				}
				expect.Equal(t, "the run ended before the outage", false, clock.Now().Before(over))
			})
		}
	}
}

// An error of the outage that arrives after its end does not count as an attempt.
func TestErrorOfAnEndedOutage(t *testing.T) {
	api := newFakeAPI(1)
	engine := newTestEngine(api, &fakeStore{})
	engine.prepare()
	object := api.metadata(objectKey(0))
	api.onPatch = func(string) error {
		if len(api.patched) > 1 {
			return nil
		}
		engine.breaker.close()
		return webhookUnavailable()
	}
	got, err := engine.attempt(t.Context(), patchOf(&object))
	if err != nil || got.cause != nil || got.after == nil || len(api.patched) != 2 {
		t.Errorf("the answer is %+v, %v after %d patches", got, err, len(api.patched))
	}
	expect.Equal(t, "failures are counted", 0, engine.breaker.inRow)
}

// A patch that was in flight when the outage began succeeds while the first probe waits.
func TestLateAnswerEndsAnOutage(t *testing.T) {
	api := newFakeAPI(1)
	engine := newTestEngine(api, &fakeStore{})
	engine.prepare()
	object := api.metadata(objectKey(0))
	for range breakAfter {
		engine.breaker.record(&object, webhookUnavailable())
	}
	api.onDefinitionRead = func() error {
		engine.breaker.record(&object, nil)
		return nil
	}
	expect.NoError(t, engine.awaitBreaker(t.Context()))
	if len(api.lists) != 1 || engine.breaker.open() != nil {
		t.Errorf("%d lists were tried, and patches wait for %v", len(api.lists), engine.breaker.open())
	}
}

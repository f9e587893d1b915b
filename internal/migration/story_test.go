// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// stage is one scenario of a run. Its pods run one after the other.
type stage struct {
	*testing.T
	api   *fakeAPI
	store *fakeStore
	clock *fakeClock
	pods  []func(*Engine, context.CancelFunc)
	// every prepares each pod.
	every func(*Engine)
	// exact keeps progress, times and rates in the log; random leaves out how often objects were patched.
	exact, random bool
}

// stories are scenarios of a run. testdata/stories has the log of the pods of each, and their last record.
var stories = map[string]func(s *stage){
	"complete": func(s *stage) {
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Preflight, e.Verify = 4, v1alpha1.MigrationVerifySample })
	},
	"everything-verified": func(s *stage) {
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Verify = v1alpha1.MigrationVerifyFull })
	},
	"everything-current": func(s *stage) {
		s.pod(nil)
		s.pod(func(e *Engine, _ context.CancelFunc) { s.store = &fakeStore{}; e.Checkpoints = s.store })
	},
	// Every patch takes two seconds: progress is logged with the first rate, and ten seconds later.
	"progress": func(s *stage) {
		s.exact = true
		s.api.onPatch = func(key string) error {
			expect.NoError(s, s.clock.Sleep(s.Context(), 2*time.Second))
			return refusals{objectKey(5): forbidden("a005")}.of(key)
		}
		s.pod(onePerPage)
	},
	"refused-by-admission": func(s *stage) {
		refuse := refusals{objectKey(3): forbidden("a003")}.of
		s.api.onPatch, s.api.onDryRun = refuse, refuse
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Preflight = 5 })
	},
	"refused-is-not-verified": func(s *stage) {
		s.api.onPatch = refusals{objectKey(3): forbidden("a003")}.of
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Verify = v1alpha1.MigrationVerifySample })
	},
	"accepted-by-fallback": func(s *stage) {
		s.api.onPatch = refusals{objectKey(5): invalid("a005")}.of
		s.api.onPath = func(Patch) error { return nil }
		s.pod(func(e *Engine, _ context.CancelFunc) {
			e.Fallback = []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus}
		})
	},
	"cannot-be-converted": func(s *stage) {
		s.api.broken = map[string]string{objectKey(5): "v1 "}
		s.pod(func(e *Engine, _ context.CancelFunc) { e.OldVersions = []string{"v1beta1"} })
	},
	// The preflight lists all objects, too.
	"preflight-of-failing-list": func(s *stage) {
		s.api.broken = map[string]string{objectKey(7): "v1 "}
		s.pod(func(e *Engine, _ context.CancelFunc) {
			e.Preflight, e.PageSize, e.OldVersions = 4, 12, []string{"v1beta1"}
		})
	},
	"unreadable": func(s *stage) {
		s.api.broken = map[string]string{objectKey(5): "v1 v1beta1 "}
		s.pod(func(e *Engine, _ context.CancelFunc) { e.OldVersions = []string{"v1beta1"} })
	},
	"unreadable-first": func(s *stage) {
		s.api.broken = map[string]string{objectKey(0): "v1 v1beta1 "}
		s.pod(func(e *Engine, _ context.CancelFunc) { e.OldVersions = []string{"v1beta1"} })
	},
	"unreadable-and-no-other-version": func(s *stage) {
		s.api.broken = map[string]string{objectKey(7): "v1 v1beta1 "}
		s.pod(nil)
	},
	// Other clients write the unreadable object at its old version.
	"unreadable-is-written": func(s *stage) {
		s.api.broken = map[string]string{objectKey(7): "v1 "}
		s.api.onPatch = func(string) error { s.api.write(objectKey(7), "v1beta1"); return nil }
		s.pod(func(e *Engine, _ context.CancelFunc) { e.OldVersions = []string{"v1beta1"} })
	},
	"too-large": func(s *stage) {
		s.api.onPatch = refusals{objectKey(5): tooLarge()}.of
		s.pod(nil)
	},
	"recreated": func(s *stage) {
		s.api.onPatch = once(objectKey(5), func() { s.api.recreate(objectKey(5), "v1beta1") })
		s.pod(nil)
	},
	"all-refused": func(s *stage) {
		s.api.onDryRun = func(key string) error { return invalid(strings.TrimPrefix(key, "ns/")) }
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Preflight = 4 })
	},
	"webhook-unavailable": func(s *stage) {
		away := s.until(10*time.Minute, webhookUnavailable())
		s.random = true
		s.api.onPatch, s.api.onDryRun = away, away
		s.pod(onePerPage)
	},
	"preflight-without-converter": func(s *stage) {
		s.random = true
		s.api.onDryRun = s.until(time.Hour, converterUnavailable())
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Preflight = 4 })
	},
	// One object fails with the errors of an outage, and all others succeed.
	"looks-like-an-outage": func(s *stage) {
		refuse := refusals{objectKey(0): converterUnavailable()}.of
		s.api.onPatch, s.api.onDryRun = refuse, refuse
		s.pod(onePerPage)
	},
	"looks-like-an-outage-at-the-end": func(s *stage) {
		refuse := refusals{objectKey(11): converterUnavailable()}.of
		s.api.onPatch, s.api.onDryRun = refuse, refuse
		s.pod(onePerPage)
	},
	"server-unavailable": func(s *stage) {
		s.api.onPatch = func(string) error { return badGateway() }
		s.api.onDryRun = func(string) error { return unreachable() }
		s.pod(nil)
	},
	"definition-changed-in-an-outage": func(s *stage) {
		s.api.onPatch = func(string) error { return webhookUnavailable() }
		s.api.onDryRun = func(string) error { s.api.definition.Generation++; return webhookUnavailable() }
		s.pod(onePerPage)
	},
	"etcd-compacted": func(s *stage) {
		s.api.onList = func(options metav1.ListOptions) error {
			if options.Continue == "112|ns/a004" {
				s.api.write("ns/a0045", "v1")
				s.api.expire()
			}
			return nil
		}
		s.pod(nil)
	},
	"token-lost": func(s *stage) {
		s.api.onList = firstPassExpires()
		s.api.onPatch = refusals{objectKey(1): forbidden("a001")}.of
		s.pod(nil)
	},
	"list-always-expires": func(s *stage) {
		s.api.onList = pagesExpire("")
		s.pod(nil)
	},
	"token-always-expires": func(s *stage) {
		s.api.onList = pagesExpire("gone|ns/a004")
		s.pod(nil)
	},
	"pod-killed": func(s *stage) {
		s.pod(func(e *Engine, kill context.CancelFunc) {
			onePerPage(e, kill)
			s.api.onPatch = once(objectKey(7), kill)
		})
		s.pod(nil)
	},
	"lagging-server": func(s *stage) {
		lagging(s.api, s.clock, 90*time.Second)
		s.pod(onePerPage)
	},
	// Every list is followed by a write at the old version, as if two API servers took turns.
	"servers-never-agree": func(s *stage) {
		s.api.onList = func(metav1.ListOptions) error { s.api.write(objectKey(4), "v1beta1"); return nil }
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Verify = v1alpha1.MigrationVerifyFull })
	},
	"edited-by-admission": func(s *stage) {
		s.api.afterPatch = func(key string) error { s.api.edit(key); return nil }
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Verify = v1alpha1.MigrationVerifyFull })
	},
	"cannot-be-verified": func(s *stage) {
		s.random = true // another patch may be under way
		s.api.onPatch = func(key string) error {
			if len(s.api.patched) <= 12 {
				return nil
			}
			return refusals{objectKey(3): forbidden("a003")}.of(key)
		}
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Verify = v1alpha1.MigrationVerifySample })
	},
	"servers-not-checked": func(s *stage) {
		s.pod(func(e *Engine, _ context.CancelFunc) {
			e.Servers = &fakeServers{since: map[string]int{"10.0.0.1:6443": 0}, refuse: unauthorized()}
		})
	},
	"other-storage-version": func(s *stage) {
		s.exact = true
		s.pod(func(e *Engine, _ context.CancelFunc) {
			e.PropagationDelay.Duration = 10 * time.Minute
			e.Discovery = discoveryFunc(func(context.Context) (*metav1.APIResource, error) {
				return shownWith(storageVersionHash("example.com", "v1beta1", "CronTab")), nil
			})
		})
	},
	"definition-changed": func(s *stage) {
		s.api.onPatch = once(objectKey(7), func() {
			s.api.definition.Generation++
			_ = s.clock.Sleep(context.Background(), 2*time.Second)
		})
		s.pod(onePerPage)
	},
	"definition-changed-while-writes-drain": func(s *stage) {
		s.pod(func(e *Engine, _ context.CancelFunc) {
			e.Discovery = discoveryFunc(func(ctx context.Context) (*metav1.APIResource, error) {
				s.api.definition.Generation = 4
				return s.api.ServedResource(ctx)
			})
		})
	},
	// A retry may be sent long after the first attempt.
	"definition-changed-between-tries": func(s *stage) {
		s.api.onPatch = func(string) error { s.api.definition.Generation = 4; return overloaded(5) }
		s.pod(nil)
	},
	// A resource without a CustomResourceDefinition is pinned to the hash in discovery, whatever version
	// that stands for.
	"built-in":         func(s *stage) { s.builtIn(shownWith("first")) },
	"built-in-changed": func(s *stage) { s.builtIn(shownWith("second")) },
	"built-in-gone":    func(s *stage) { s.builtIn(nil) },
	"endpoint-gone": func(s *stage) {
		s.api.onPatch = refusals{objectKey(2): forbidden("a002"), objectKey(7): generic(404, "")}.of
		s.pod(nil)
		s.pod(nil)
	},
	"rights-lost": func(s *stage) {
		s.api.onList = func(o metav1.ListOptions) error {
			if o.Continue == "" {
				return nil
			}
			return apierrors.NewUnauthorized("token expired")
		}
		s.pod(nil)
	},
	// No object fails, and the next pod, which has the right, continues.
	"right-to-patch-lost": func(s *stage) {
		s.api.onPatch = refusals{objectKey(7): withoutRight("patch", "a007")}.of
		s.pod(nil)
		s.pod(func(*Engine, context.CancelFunc) { s.api.onPatch = nil })
	},
	"failed-objects-retried": func(s *stage) {
		before := &fakeStore{}
		s.api.onPatch = refusals{objectKey(5): invalid("a005")}.of
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Checkpoints = before })
		s.pod(func(e *Engine, _ context.CancelFunc) {
			s.api.onPatch = nil
			e.Spec.Run, e.PreviousRun = "run-2", before
		})
	},
}

func (s *stage) pod(prepare func(*Engine, context.CancelFunc)) { s.pods = append(s.pods, prepare) }

// builtIn migrates a resource without a CustomResourceDefinition, which discovery shows in this way after the
// fifth object.
func (s *stage) builtIn(after *metav1.APIResource) {
	shown := shownWith("first")
	s.api.onPatch = once(objectKey(4), func() { shown = after })
	s.pod(func(e *Engine, _ context.CancelFunc) {
		e.Pin = contract.Pin{Name: "crontabs.example.com", StorageVersionHash: "first"}
		e.Discovery = discoveryFunc(func(context.Context) (*metav1.APIResource, error) { return shown, nil })
		e.Servers = &fakeServers{err: forbidden("kubernetes")}
	})
}

// until returns a hook that fails for some time.
func (s *stage) until(duration time.Duration, err error) func(string) error {
	over := s.clock.Now().Add(duration)
	return func(string) error {
		if s.clock.Now().After(over) {
			return nil
		}
		return err
	}
}

// onePerPage disables concurrency, so that the log is deterministic.
func onePerPage(e *Engine, _ context.CancelFunc) { e.PageSize = 1 }

// refusals are the errors of objects.
type refusals map[string]error

// of is a hook of the fake.
func (r refusals) of(key string) error { return r[key] }

// once returns a hook that calls do at the first patch of the object.
func once(key string, do func()) func(string) error {
	done := false
	return func(k string) error {
		if k == key && !done {
			done = true
			do()
		}
		return nil
	}
}

// varying matches the parts of a line that vary, because the delays of retries are random.
var varying = regexp.MustCompile(`"(took|wait|perSecond)"=("[^"]*"|[0-9.]+)`)

// progressLine matches the lines that show progress. Their number varies for the same reason.
var progressLine = regexp.MustCompile(`(?m)^.*"msg"="Migrating" .*\n`)

// TestStories compares the logs with testdata/stories. Read these files: a person must be able to
// follow them.
func TestStories(t *testing.T) {
	told := 0
	for _, group := range []map[string]func(*stage){stories, preservedStories, managedFieldsStories} {
		told += len(group)
		for name, play := range group {
			t.Run(name, func(t *testing.T) {
				s := &stage{T: t, api: newFakeAPI(12), store: &fakeStore{}, clock: newFakeClock()}
				play(s)
				var text strings.Builder
				for _, prepare := range s.pods {
					s.run(prepare, &text)
				}
				log := text.String()
				if !s.exact {
					log = progressLine.ReplaceAllString(varying.ReplaceAllString(log, `"$1"=…`), "")
				}
				golden.Check(t, log+s.end(), "stories", name+".log")
			})
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "stories", "*.log"))
	expect.NoError(t, err)
	expect.Equal(t, "files of stories", told, len(files))
}

func (s *stage) run(prepare func(*Engine, context.CancelFunc), text *strings.Builder) {
	s.Helper()
	log := funcr.New(func(_, args string) { text.WriteString(args + "\n") }, funcr.Options{Verbosity: 1})
	ctx, kill := context.WithCancel(logr.NewContext(s.Context(), log))
	defer kill()
	engine := newTestEngine(s.api, s.store)
	engine.Clock = s.clock
	if s.every != nil {
		s.every(engine)
	}
	if prepare != nil {
		prepare(engine, kill)
	}
	if _, err := engine.Run(ctx); err != nil {
		text.WriteString("the pod ends: " + err.Error() + "\n")
	}
}

// end says in what state the pods leave the record and the objects.
func (s *stage) end() string {
	s.Helper()
	var text strings.Builder
	records := s.store.records(s.T)
	record := records[len(records)-1]
	record.StartTime, record.CompletionTime, record.Failures = nil, nil, nil
	record.RatePerSecond, record.EstimatedCompletion = 0, nil
	encoded, err := json.Marshal(record)
	expect.NoError(s, err)
	failures, err := FailuresOf(s.store.data)
	expect.NoError(s, err)
	fmt.Fprintf(&text, "the record: %s\nfailures in the list: %d\n", encoded, len(failures))
	if !s.random {
		fmt.Fprintf(&text, "patches: %d, dry runs: %d\n", len(s.api.patched), len(s.api.dryRuns))
	}
	fmt.Fprintf(&text, "stored at an old version: %v\n", s.api.oldKeys())
	for _, key := range slices.Sorted(maps.Keys(s.api.objects)) {
		if owners := s.api.ownersOf(key); owners != "" {
			fmt.Fprintf(&text, "owners of %s: %s\n", key, owners)
		}
	}
	return text.String()
}

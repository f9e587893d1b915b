// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// stage is one scenario of a run. Its pods run one after the other.
type stage struct {
	api   *fakeAPI
	store *fakeStore
	clock *fakeClock
	pods  []func(*Engine, context.CancelFunc)
}

// stories are scenarios of a run. testdata/stories has the log of the pods of each.
var stories = map[string]func(s *stage){
	"complete": func(s *stage) {
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Preflight, e.Verify = 4, v1alpha1.MigrationVerifySample })
	},
	"everything-verified": func(s *stage) {
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Verify = v1alpha1.MigrationVerifyFull })
	},
	"refused-by-admission": func(s *stage) {
		refuse := s.refuse(objectKey(3), forbidden("a003"))
		s.api.onPatch, s.api.onDryRun = refuse, refuse
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Preflight = 5 })
	},
	"accepted-by-fallback": func(s *stage) {
		s.api.onPatch = s.refuse(objectKey(5), invalid("a005"))
		s.api.onPath = func(Patch) error { return nil }
		s.pod(func(e *Engine, _ context.CancelFunc) {
			e.Fallback = []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus}
		})
	},
	"cannot-be-converted": func(s *stage) {
		s.api.broken = map[string]string{objectKey(5): "v1 "}
		s.pod(func(e *Engine, _ context.CancelFunc) { e.OldVersions = []string{"v1beta1"} })
	},
	"unreadable": func(s *stage) {
		s.api.broken = map[string]string{objectKey(5): "v1 v1beta1 "}
		s.pod(func(e *Engine, _ context.CancelFunc) { e.OldVersions = []string{"v1beta1"} })
	},
	"too-large": func(s *stage) {
		s.api.onPatch = s.refuse(objectKey(5), tooLarge())
		s.pod(nil)
	},
	"recreated": func(s *stage) {
		s.api.onPatch = s.once(objectKey(5), func() { s.api.recreate(objectKey(5), "v1beta1") })
		s.pod(nil)
	},
	"all-refused": func(s *stage) {
		s.api.onDryRun = func(key string) error { return invalid(strings.TrimPrefix(key, "ns/")) }
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Preflight = 4 })
	},
	"webhook-unavailable": func(s *stage) {
		over := s.clock.Now().Add(10 * time.Minute)
		away := func(string) error {
			if s.clock.Now().After(over) {
				return nil
			}
			return webhookUnavailable()
		}
		s.api.onPatch, s.api.onDryRun = away, away
		s.pod(nil)
	},
	"etcd-compacted": func(s *stage) {
		s.api.onPatch = s.once(objectKey(3), func() { s.api.expire() })
		s.pod(nil)
	},
	"token-lost": func(s *stage) {
		s.api.onList = firstPassExpires()
		s.pod(nil)
	},
	"pod-killed": func(s *stage) {
		s.pod(func(e *Engine, kill context.CancelFunc) {
			onePerPage(e, kill)
			s.api.onPatch = s.once(objectKey(7), kill)
		})
		s.pod(nil)
	},
	"lagging-server": func(s *stage) {
		lagging(s.api, s.clock, 90*time.Second)
		s.pod(onePerPage)
	},
	"servers-not-checked": func(s *stage) {
		s.pod(func(e *Engine, _ context.CancelFunc) {
			e.Servers = &fakeServers{since: map[string]int{"10.0.0.1:6443": 0}, refuse: unauthorized()}
		})
	},
	"definition-changed": func(s *stage) {
		s.api.onPatch = s.once(objectKey(7), func() {
			s.api.definition.Generation++
			_ = s.clock.Sleep(context.Background(), 2*time.Second)
		})
		s.pod(onePerPage)
	},
	"endpoint-gone": func(s *stage) {
		s.api.onPatch = s.refuse(objectKey(7), generic(404, ""))
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
	"failed-objects-retried": func(s *stage) {
		before := &fakeStore{}
		s.api.onPatch = s.refuse(objectKey(5), invalid("a005"))
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Checkpoints = before })
		s.pod(func(e *Engine, _ context.CancelFunc) {
			s.api.onPatch = nil
			e.Spec.Run, e.PreviousRun = "run-2", before
		})
	},
}

func (s *stage) pod(prepare func(*Engine, context.CancelFunc)) { s.pods = append(s.pods, prepare) }

// onePerPage disables concurrency, so that the log is deterministic.
func onePerPage(e *Engine, _ context.CancelFunc) { e.PageSize = 1 }

func (s *stage) refuse(key string, err error) func(string) error {
	return func(k string) error {
		if k == key {
			return err
		}
		return nil
	}
}

// once returns a hook that calls do at the first patch of the object.
func (s *stage) once(key string, do func()) func(string) error {
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

// more matches the progress lines that follow one. Their number varies for the same reason.
var more = regexp.MustCompile(`(?m)(^.*"msg"="Migrating" .*\n)(?:^.*"msg"="Migrating" .*\n)+`)

// TestStories compares the logs with testdata/stories. Read these files: a person must be able to
// follow them.
func TestStories(t *testing.T) {
	for name, play := range stories {
		t.Run(name, func(t *testing.T) {
			s := &stage{api: newFakeAPI(12), store: &fakeStore{}, clock: newFakeClock()}
			play(s)
			var text strings.Builder
			for _, prepare := range s.pods {
				s.run(t, prepare, &text)
			}
			log := more.ReplaceAllString(varying.ReplaceAllString(text.String(), `"$1"=…`), "$1")
			golden.Check(t, log, "stories", name+".log")
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "stories", "*.log"))
	if err != nil || len(files) != len(stories) {
		t.Errorf("%d stories, and %d files of them: %v", len(stories), len(files), err)
	}
}

func (s *stage) run(t *testing.T, prepare func(*Engine, context.CancelFunc), text *strings.Builder) {
	t.Helper()
	log := funcr.New(func(_, args string) { text.WriteString(args + "\n") }, funcr.Options{Verbosity: 1})
	ctx, kill := context.WithCancel(logr.NewContext(t.Context(), log))
	defer kill()
	engine := newTestEngine(s.api, s.store)
	engine.Clock = s.clock
	if prepare != nil {
		prepare(engine, kill)
	}
	if _, err := engine.Run(ctx); err != nil {
		text.WriteString("the pod ends: " + err.Error() + "\n")
	}
}

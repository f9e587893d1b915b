// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// target is a custom resource with a generation.
func target(generation int64) *Target {
	return &Target{
		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"},
		CRD: &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: "crontabs.example.com", UID: "u1", Generation: generation}},
	}
}

// recordOf is the data of a run in a state.
func recordOf(t *testing.T, state contract.State) map[string]string {
	t.Helper()
	now := metav1.Now()
	r := contract.Record{Format: contract.RecordFormat, Run: "earlier", CRDUID: "u1", CRDGeneration: 3, State: state, StartTime: &now, Barrier: "7"}
	if r.Finished() {
		r.CompletionTime = &now
	}
	text, err := json.Marshal(r)
	expect.NoError(t, err)
	return map[string]string{contract.RecordKey: string(text), "failures-0.json": "[]"}
}

func TestBegin(t *testing.T) {
	for name, tt := range map[string]struct {
		data      map[string]string
		target    *Target
		restart   bool
		continues bool
		err       string
	}{
		"nothing yet":           {target: target(3)},
		"an unfinished run":     {data: recordOf(t, contract.StateRunning), target: target(3), continues: true},
		"another generation":    {data: recordOf(t, contract.StateRunning), target: target(4)},
		"another definition":    {data: recordOf(t, contract.StateRunning), target: &Target{CRD: &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{UID: "u2", Generation: 3}}}},
		"a restart":             {data: recordOf(t, contract.StateRunning), target: target(3), restart: true},
		"a complete run":        {data: recordOf(t, contract.StateCompleted), target: target(3)},
		"an unreadable record":  {data: map[string]string{contract.RecordKey: "{"}, target: target(3), err: "--restart"},
		"the same, and restart": {data: map[string]string{contract.RecordKey: "{"}, target: target(3), restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := OpenFile(t.Context(), filepath.Join(t.TempDir(), "record"))
			expect.NoError(t, err)
			store := file.of("crontabs.example.com")
			if tt.data != nil {
				expect.NoError(t, store.Save(t.Context(), tt.data))
			}
			run, err := begin(t.Context(), store, tt.target, tt.restart)
			if tt.err != "" {
				expect.Contains(t, "error", fmt.Sprint(err), tt.err)
				return
			}
			expect.NoError(t, err)
			expect.Equal(t, "it continues", tt.continues, run == "earlier")
			data, err := store.Load(t.Context())
			expect.NoError(t, err)
			want := 0
			if tt.continues {
				want = len(tt.data)
			}
			expect.Equal(t, "data", want, len(data))
		})
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	file, err := OpenFile(t.Context(), path)
	expect.NoError(t, err)
	a, b := file.of("a"), file.of("b")
	expect.NoError(t, a.Save(t.Context(), map[string]string{"x": "1", "y": "2"}))
	expect.NoError(t, a.Save(t.Context(), map[string]string{"x": "3"}))
	expect.NoError(t, b.Save(t.Context(), map[string]string{"x": "4"}))
	expect.NoError(t, file.Close())

	file, err = OpenFile(t.Context(), path)
	expect.NoError(t, err)
	data, err := file.of("a").Load(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, "data", map[string]string{"x": "3", "y": "2"}, data)

	// Another process that takes the file over.
	expect.NoError(t, os.WriteFile(file.lock(), []byte("another"), 0o600))
	taken := takenError{"file " + path, "another"}
	if err := file.of("a").renew(t.Context()); !errors.Is(err, taken) {
		t.Errorf("renewal: %v", err)
	}
	if err := file.of("a").Save(t.Context(), map[string]string{"x": "5"}); err == nil || !strings.Contains(err.Error(), taken.Error()) {
		t.Errorf("saving: %v", err)
	}
	expect.NoError(t, file.Close())
	if _, err := os.Stat(file.lock()); err != nil {
		t.Errorf("the lock of the other process was removed: %v", err)
	}
}

func TestFileInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	held, err := OpenFile(t.Context(), path)
	expect.NoError(t, err)
	other := &File{path: path, holder: "other", observation: time.Minute, records: map[string]map[string]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for ctx.Err() == nil {
			_ = held.of("a").renew(ctx)
		}
	})
	err = other.take(t.Context())
	cancel()
	renewing.Wait()
	if !errors.Is(err, heldError{"file " + path, held.holder}) {
		t.Errorf("error is %v", err)
	}

	// A process that was killed gives no sign of life.
	other.observation = time.Millisecond
	expect.NoError(t, other.take(t.Context()))
	expect.Equal(t, "the owner", "other", other.owner())
}

func TestForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	for _, text := range []string{"my notes", "null"} {
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := OpenFile(t.Context(), path); err == nil || !strings.Contains(err.Error(), "is no record of this command") {
			t.Errorf("%s: error is %v", text, err)
		}
		if _, err := os.Stat(path + ".lock"); !os.IsNotExist(err) {
			t.Errorf("%s: the lock stays: %v", text, err)
		}
	}
	if _, err := OpenFile(t.Context(), filepath.Join(t.TempDir(), "no", "folder")); err == nil {
		t.Error("no error without the folder")
	}
}

// TestFileInterrupted: a user who does not wait for the other process reads what ended the command.
func TestFileInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	_, err := OpenFile(t.Context(), path)
	expect.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, err := OpenFile(ctx, path); !errors.Is(err, errInterrupted) {
		t.Errorf("error is %v", err)
	}
}

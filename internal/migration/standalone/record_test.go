// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// dataOf is what a file has of a resource.
func dataOf(t *testing.T, path, resource string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	expect.NoError(t, err)
	var records map[string]map[string]string
	expect.NoError(t, json.Unmarshal(text, &records))
	return records[resource]
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
	expect.NoError(t, file.of("b").Save(t.Context(), map[string]string{"x": "5"}))
	expect.Equal(t, "data", map[string]string{"x": "3", "y": "2"}, dataOf(t, path, "a"))
	expect.NoError(t, file.of("a").reset(t.Context()))
	expect.Equal(t, "data after a reset", []int{0, 1}, []int{len(dataOf(t, path, "a")), len(dataOf(t, path, "b"))})

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

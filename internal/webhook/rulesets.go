// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// A converter pod follows the directory of its rulesets. The kubelet changes it when the mounted
// ConfigMap changes, so that a change of rules replaces no pod. A ruleset that disappears stays in
// memory for as long as API servers may need it: someone may have edited the ConfigMap.

const (
	// followEvery is the time between two looks at the directory. A look reads one modification
	// time, unless that has changed.
	followEvery = 200 * time.Millisecond
	// listEvery is the time after which the directory is read although its modification time has
	// not changed. Clocks of file systems tick too slowly to tell two changes apart.
	listEvery = 10 * time.Second
	// keepUnused is how long a ruleset that is no longer in the directory is kept after the last
	// request for it.
	keepUnused = 10 * time.Minute
)

// RulesetDirectory is a directory of stored rulesets, such as a mounted ConfigMap. Its files are
// named by conversion.StoredName.
type RulesetDirectory struct {
	path string
	// shared is whether the rulesets may be of several CustomResourceDefinitions.
	shared bool
	log    logr.Logger
	now    func() time.Time
	// compile is LoadRuleset, except in tests.
	compile func(hash string, stored []byte) (Ruleset, error)
	// rulesets are those that the pod serves. Some may have disappeared from the directory.
	rulesets []Ruleset
	// failed is why rulesets in the directory are not served, by hash.
	failed map[string]string
	// modified is the modification time of the directory when it was listed last, at listed.
	modified, listed time.Time
	// removed is when rulesets were first missing in the directory, by hash.
	removed map[string]time.Time
}

// errPanicLoading replaces the value of a panic, which is only logged, so that all pods report the
// same.
var errPanicLoading = errors.New("internal error of the converter while it loaded the ruleset, its cause is in the log of the converter pod: please report it")

// OpenRulesets loads all rulesets of a directory. Unless it is shared, it fails if there is none, or
// if one cannot be loaded: a pod must not be ready before it has every ruleset that API servers may
// request. A shared directory may have rulesets of several CustomResourceDefinitions, or none, and
// one that cannot be loaded affects no other.
func OpenRulesets(path string, log logr.Logger, shared bool) (*RulesetDirectory, error) {
	d := &RulesetDirectory{path: path, shared: shared, log: log, now: time.Now, compile: LoadRuleset, removed: map[string]time.Time{}}
	info, err := os.Stat(path)
	if err == nil {
		_, err = d.list(info.ModTime())
	}
	if err != nil {
		return nil, fmt.Errorf("find rulesets: %w", err)
	}
	if shared {
		return d, nil
	}
	for _, hash := range slices.Sorted(maps.Keys(d.failed)) {
		return nil, fmt.Errorf("ruleset %s in %s: %s", hash, path, d.failed[hash])
	}
	if len(d.rulesets) == 0 {
		return nil, fmt.Errorf("no ruleset (%s) found in %s: mount the rulesets there, or correct --rulesets", conversion.StoredName("*", "*"), path)
	}
	return d, nil
}

// Rulesets are the rulesets to serve.
func (d *RulesetDirectory) Rulesets() []Ruleset { return d.rulesets }

// follow makes the handler serve the rulesets of the directory, until the context ends.
func (d *RulesetDirectory) follow(ctx context.Context, handler *Handler) error {
	ticker, garbage := time.NewTicker(followEvery), newGarbage()
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			garbage.limit()
			if d.update(handler) {
				d.log.Info("Serving other rulesets", "rulesets", len(d.rulesets), "failed", len(d.failed))
			}
		}
	}
}

// update makes the handler serve the current rulesets, and reports whether they are others.
func (d *RulesetDirectory) update(handler *Handler) (changed bool) {
	info, err := os.Stat(d.path)
	if err == nil && (!info.ModTime().Equal(d.modified) || d.now().Sub(d.listed) >= listEvery) {
		changed, err = d.list(info.ModTime())
	}
	if err != nil {
		d.log.Error(err, "Rulesets cannot be read; the converter serves those that it has")
	}
	if d.unload(handler) {
		changed = true
	}
	if changed {
		d.serve(handler)
	}
	return changed
}

// serve makes the handler serve the loaded rulesets, and report the others.
func (d *RulesetDirectory) serve(handler *Handler) {
	handler.serve(d.rulesets, d.failed)
	handler.fit()
}

// list loads the rulesets that are new in the directory, and reports whether something changed. The
// directory was modified at that time, or has been since.
func (d *RulesetDirectory) list(modified time.Time) (changed bool, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return false, err
	}
	present, failed := map[string]bool{}, map[string]string{}
	for _, ruleset := range d.rulesets {
		present[ruleset.Hash] = false
	}
	var names []string
	for _, entry := range entries {
		hash, is := conversion.StoredHash(entry.Name())
		if !is {
			continue
		}
		if _, known := present[hash]; !known {
			names = append(names, entry.Name())
		}
		present[hash] = true
	}
	for _, loaded := range d.loadAll(names) {
		if loaded.err == nil {
			loaded.err = d.accept(loaded.Ruleset)
		}
		if loaded.err != nil {
			failed[loaded.Hash] = loaded.err.Error()
			d.logFailed(loaded)
			continue
		}
		d.rulesets, changed = append(d.rulesets, loaded.Ruleset), true
	}
	d.noteRemoved(present)
	changed = changed || !maps.Equal(failed, d.failed)
	d.failed, d.modified, d.listed = failed, modified, d.now()
	return changed, nil
}

// logFailed logs why a ruleset is not served, once for each reason.
func (d *RulesetDirectory) logFailed(failed loaded) {
	if d.failed[failed.Hash] == failed.err.Error() {
		return
	}
	log := d.log
	if failed.panic != nil {
		log = log.WithValues("panic", fmt.Sprint(failed.panic), "stack", string(failed.stack))
	}
	log.Error(failed.err, "A ruleset cannot be served", "rulesetHash", failed.Hash)
}

// loaded is a ruleset, or why it cannot be loaded.
type loaded struct {
	Ruleset
	err error
	// panic and stack are set if loading panicked.
	panic any
	stack []byte
}

// loadAll loads rulesets of the directory.
func (d *RulesetDirectory) loadAll(names []string) []loaded {
	all := make([]loaded, len(names))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		group.Go(func() error {
			all[i] = d.load(name)
			return nil
		})
	}
	_ = group.Wait() // the errors are in all
	return all
}

// load compiles a ruleset of the directory. A panic concerns only this ruleset, not the pod, which
// serves others.
func (d *RulesetDirectory) load(name string) (result loaded) {
	hash, _ := conversion.StoredHash(name)
	defer func() {
		if cause := recover(); cause != nil {
			result = loaded{Ruleset{Hash: hash}, errPanicLoading, cause, debug.Stack()}
		}
	}()
	stored, err := os.ReadFile(filepath.Join(d.path, name))
	if err != nil {
		return loaded{Ruleset: Ruleset{Hash: hash}, err: fmt.Errorf("read it: %w", err)}
	}
	ruleset, err := d.compile(hash, stored)
	return loaded{Ruleset: ruleset, err: err}
}

// accept returns why a ruleset cannot be served beside the others, or nil.
func (d *RulesetDirectory) accept(ruleset Ruleset) error {
	if d.shared || len(d.rulesets) == 0 || ruleset.CRD == d.rulesets[0].CRD {
		return nil
	}
	return fmt.Errorf("it is for %s, and others are for %s: a pod converts for one CustomResourceDefinition, unless it has the flag --shared", ruleset.CRD, d.rulesets[0].CRD)
}

// LoadRuleset reads and compiles a stored ruleset.
func LoadRuleset(hash string, stored []byte) (Ruleset, error) {
	ruleset, err := conversion.LoadStored(hash, stored)
	if err != nil {
		return Ruleset{Hash: hash}, err
	}
	converter, err := conversion.NewConverter(ruleset)
	if err != nil {
		return Ruleset{Hash: hash}, fmt.Errorf("compile it: %w", err)
	}
	return Ruleset{CRD: ruleset.CRD, Group: ruleset.Group, Kind: ruleset.Kind, Hash: hash, Pairs: ruleset.Pairs(), Converter: converter}, nil
}

// noteRemoved notes which rulesets are no longer in the directory.
func (d *RulesetDirectory) noteRemoved(present map[string]bool) {
	for _, ruleset := range d.rulesets {
		_, known := d.removed[ruleset.Hash]
		switch {
		case present[ruleset.Hash]:
			delete(d.removed, ruleset.Hash)
		case !known:
			d.removed[ruleset.Hash] = d.now()
		}
	}
}

// unload drops the rulesets that were removed from the directory, once they are no longer
// requested. If the directory is empty, all of them stay.
func (d *RulesetDirectory) unload(handler *Handler) (changed bool) {
	if len(d.removed) == 0 || len(d.removed) == len(d.rulesets) {
		return false
	}
	d.rulesets = slices.DeleteFunc(slices.Clone(d.rulesets), func(ruleset Ruleset) bool {
		since, removed := d.removed[ruleset.Hash]
		if !removed || d.now().Sub(since) < keepUnused || d.now().Sub(handler.lastRequest(ruleset.Hash)) < keepUnused {
			return false
		}
		delete(d.removed, ruleset.Hash)
		changed = true
		return true
	})
	return changed
}

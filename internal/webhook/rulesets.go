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
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
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
	// CRD is the name of the CustomResourceDefinition that all rulesets are for, and Group and Kind
	// those of its objects.
	CRD, Group, Kind string

	path string
	log  logr.Logger
	now  func() time.Time
	// rulesets are those that the pod serves. Some may have disappeared from the directory.
	rulesets []Ruleset
	// failed is why rulesets in the directory are not served, by hash.
	failed map[string]string
	// modified is the modification time of the directory when it was listed last, at listed.
	modified, listed time.Time
	// removed is when rulesets were first missing in the directory, by hash.
	removed map[string]time.Time
}

// OpenRulesets loads all rulesets of a directory. It fails if there is none, or if one cannot be
// loaded: a pod must not be ready before it has every ruleset that API servers may request.
func OpenRulesets(path string, log logr.Logger) (*RulesetDirectory, error) {
	d := &RulesetDirectory{path: path, log: log, now: time.Now, removed: map[string]time.Time{}}
	info, err := os.Stat(path)
	if err == nil {
		_, err = d.list(info.ModTime())
	}
	if err != nil {
		return nil, fmt.Errorf("find rulesets: %w", err)
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
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if d.update(handler) {
				d.log.Info("Serving other rulesets", "rulesetHashes", handler.served.Load().hashes)
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
		handler.serve(d.rulesets, d.failed)
	}
	return changed
}

// list loads the rulesets that are new in the directory, and reports whether something changed. The
// directory was modified at that time, or has been since.
func (d *RulesetDirectory) list(modified time.Time) (changed bool, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return false, err
	}
	present, failed := map[string]bool{}, map[string]string{}
	for _, entry := range entries {
		hash, is := conversion.StoredHash(entry.Name())
		if !is {
			continue
		}
		present[hash] = true
		if d.has(hash) {
			continue
		}
		ruleset, err := d.load(entry.Name(), hash)
		if err != nil {
			failed[hash] = err.Error()
			continue
		}
		d.rulesets, changed = append(d.rulesets, ruleset), true
	}
	d.noteRemoved(present)
	for hash, reason := range failed {
		if d.failed[hash] != reason {
			d.log.Error(errors.New(reason), "A ruleset cannot be served", "rulesetHash", hash)
		}
	}
	changed = changed || !maps.Equal(failed, d.failed)
	d.failed, d.modified, d.listed = failed, modified, d.now()
	return changed, nil
}

func (d *RulesetDirectory) has(hash string) bool {
	return slices.ContainsFunc(d.rulesets, func(ruleset Ruleset) bool { return ruleset.Hash == hash })
}

// load compiles a ruleset of the directory.
func (d *RulesetDirectory) load(name, hash string) (Ruleset, error) {
	stored, err := os.ReadFile(filepath.Join(d.path, name))
	if err != nil {
		return Ruleset{}, fmt.Errorf("read it: %w", err)
	}
	ruleset, served, err := LoadRuleset(hash, stored)
	if err != nil {
		return Ruleset{}, err
	}
	if d.CRD == "" {
		d.CRD, d.Group, d.Kind = ruleset.CRD, ruleset.Group, ruleset.Kind
	}
	if ruleset.CRD != d.CRD {
		return Ruleset{}, fmt.Errorf("it is for %s, and others are for %s: a pod converts for one CustomResourceDefinition", ruleset.CRD, d.CRD)
	}
	return served, nil
}

// LoadRuleset reads and compiles a stored ruleset.
func LoadRuleset(hash string, stored []byte) (*conversion.Ruleset, Ruleset, error) {
	ruleset, err := conversion.LoadStored(hash, stored)
	if err != nil {
		return nil, Ruleset{}, err
	}
	converter, err := conversion.NewConverter(ruleset)
	if err != nil {
		return nil, Ruleset{}, fmt.Errorf("compile it: %w", err)
	}
	return ruleset, Ruleset{Hash: hash, Pairs: ruleset.Pairs(), Converter: converter}, nil
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

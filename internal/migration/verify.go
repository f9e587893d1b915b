// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// lagError says that an object was stored at the old version after the barrier.
type lagError string

func (l lagError) Error() string {
	return fmt.Sprintf("%s was stored at an old version after the barrier: an API server still wrote at that version", string(l))
}

// audit patches the objects again that were found current first. An API server that still encoded
// at the old version may have answered their patches; after another propagation delay none does.
func (e *Engine) audit(ctx context.Context, j *journal) error {
	log := logr.FromContextOrDiscard(ctx)
	if len(j.reverify.Early) == 0 {
		return nil
	}
	if wait := j.reverify.until.Add(e.propagationDelay(j)).Sub(e.Clock.Now()); wait > 0 {
		log.Info("Waiting before the audit of objects that were found current", "objects", len(j.reverify.Early), "wait", wait.Round(time.Second).String())
		if err := e.Clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	if _, err := e.reverify(ctx, j, objectsOf(j.reverify.Early)); err != nil {
		return err
	}
	log.Info("Audit passed: objects that were found current are current", "objects", len(j.reverify.Early))
	return nil
}

// reverify patches objects again, and returns how many did not change. It returns a lagError if the
// encoding of one changed.
func (e *Engine) reverify(ctx context.Context, j *journal, objects []metav1.PartialObjectMetadata) (unchanged int64, err error) {
	barrier := j.record.Barrier
	patchAgain := func(ctx context.Context, object *metav1.PartialObjectMetadata) (result, error) {
		return e.reverifyObject(ctx, object, barrier)
	}
	for len(objects) > 0 {
		n := min(int64(len(objects)), e.PageSize)
		err := e.forEach(ctx, j, objects[:n], patchAgain, func(r result) error {
			switch {
			case r.outcome == rewritten:
				return lagError(r.object)
			case r.outcome == failed && j.record.Failed == 0:
				return abortf("cannot verify %s: %s", r.object, r.message)
			case r.outcome == current:
				unchanged++
			}
			return nil
		})
		if err != nil {
			return unchanged, err
		}
		objects = objects[n:]
	}
	return unchanged, nil
}

// reverifyObject patches one object at the storage version. It ignores changes by admission
// webhooks, which change more than the resourceVersion.
func (e *Engine) reverifyObject(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string) (result, error) {
	known, err := e.resolve(ctx, object)
	if known == nil || err != nil {
		return resultOf(object, gone), err
	}
	if cause := e.Inventory.truncated(known, e.Resource.Version); cause != nil {
		return e.tooLarge(known, cause), nil
	}
	r, err := e.persist(ctx, known, Patch{}, barrier)
	if r.outcome == rewritten && r.edited {
		r.outcome = current
	}
	return r, err
}

// propagationDelay returns the propagation delay, which doubles with every repeat.
func (e *Engine) propagationDelay(j *journal) time.Duration {
	return e.PropagationDelay.Duration << j.record.Repeats
}

// verify patches objects again. None may change. What an earlier pod or an earlier run has passed is known
// only from a record, so a resumed run that would be complete also lists all objects: each was written
// after the barrier, or is patched again.
func (e *Engine) verify(ctx context.Context, j *journal) error {
	kind := e.verification(j)
	resumed := j.resumed && j.record.Failed == 0
	if kind == v1alpha1.MigrationVerifyNone && !resumed {
		return nil
	}
	if err := j.setState(ctx, contract.StateVerifying); err != nil {
		return err
	}
	log := logr.FromContextOrDiscard(ctx)
	log.Info("Verifying: patching objects again must not change them", "verify", kind)
	var err error
	if kind == v1alpha1.MigrationVerifySample {
		var unchanged int64
		if unchanged, err = e.reverify(ctx, j, objectsOf(j.reverify.Sample)); !resumed {
			j.record.Verified = unchanged
		}
	}
	switch {
	case err != nil:
	case kind == v1alpha1.MigrationVerifyFull:
		err = e.verifyAll(ctx, j, "")
	case resumed:
		err = e.verifyAll(ctx, j, j.record.Barrier)
	}
	if err == nil {
		log.Info("Verified", "objects", j.record.Verified)
	}
	return err
}

// verification returns what to verify. A sample is enough only if every API server was asked: one that
// was not asked may have written any object at the old version.
func (e *Engine) verification(j *journal) v1alpha1.MigrationVerification {
	switch {
	case e.Verify != "":
		return e.Verify
	case j.record.BarrierKind == contract.BarrierAllServers:
		return v1alpha1.MigrationVerifySample
	}
	return v1alpha1.MigrationVerifyFull
}

// verifyAll patches all objects that were not written after the barrier, if there is one. Like the pass,
// it continues after the last finished page.
func (e *Engine) verifyAll(ctx context.Context, j *journal, barrier string) error {
	for {
		if err := e.checkPin(ctx); err != nil {
			return err
		}
		page, err := e.pageAfter(ctx, j, j.record.Verification, func() error {
			j.record.Verified = 0
			return nil
		})
		if err != nil {
			return err
		}
		listed := len(page.Items)
		objects := slices.DeleteFunc(page.Items, func(object metav1.PartialObjectMetadata) bool { return newer(&object, barrier) })
		unchanged, err := e.reverify(ctx, j, objects)
		if err != nil {
			return err
		}
		j.record.Verified += unchanged + int64(listed-len(objects))
		j.record.Verification = page.Continue
		if page.Continue == "" {
			return nil
		}
		if err := j.save(ctx); err != nil {
			return err
		}
	}
}

const (
	// reverifyKey is the key of the objects to patch again.
	reverifyKey = "again.json"
	// maxEarly and maxSample bound them. A name with its namespace has up to 317 bytes, so both
	// lists fit into a ConfigMap.
	maxEarly  = 200
	maxSample = 300
)

// reverifyList are the objects that are patched again after the pass.
type reverifyList struct {
	// Early are the first objects that were found current. An API server that still encoded at the
	// old version would have reported objects at the old version as current.
	Early []string `json:"early,omitempty"`
	// Sample is spread evenly over all objects.
	Sample []string `json:"sample,omitempty"`

	// until is when the last of Early was found current, or, by an earlier pod, when it was read: that
	// pod may have run on a node with another time.
	until   time.Time
	changed bool
}

func openReverifyList(data map[string]string, now time.Time) (reverifyList, error) {
	s := reverifyList{until: now}
	if text := data[reverifyKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return s, fmt.Errorf("the list of objects to verify again is not readable: %w", err)
		}
	}
	return s, nil
}

// add adds the result of the object with this index in the pass.
func (s *reverifyList) add(run string, r result, index int64, now time.Time) {
	if r.outcome == current && len(s.Early) < maxEarly {
		s.Early = append(s.Early, r.object)
		s.until, s.changed = now, true
	}
	if r.outcome != current && r.outcome != rewritten {
		return
	}
	if len(s.Sample) < maxSample {
		s.Sample = append(s.Sample, r.object)
		s.changed = true
		return
	}
	if slot := draw(run, index); slot < maxSample {
		s.Sample[slot], s.changed = r.object, true
	}
}

// draw returns a random number from 0 to index, which is the same when a page is repeated. Every
// object has the same chance to be in the sample (reservoir sampling).
func draw(run string, index int64) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(run))
	return rand.New(rand.NewPCG(hash.Sum64(), uint64(index))).Uint64N(uint64(index + 1))
}

// write adds the list to data if it changed since the last write.
func (s *reverifyList) write(data map[string]string) error {
	if !s.changed {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot encode the list of objects to verify again: %w", err)
	}
	data[reverifyKey], s.changed = string(text), false
	return nil
}

// objectsOf returns objects with nothing but their names.
func objectsOf(keys []string) []metav1.PartialObjectMetadata {
	objects := make([]metav1.PartialObjectMetadata, len(keys))
	for i, key := range keys {
		namespace, name, found := strings.Cut(key, "/")
		if !found {
			namespace, name = "", key
		}
		objects[i].Namespace, objects[i].Name = namespace, name
	}
	return objects
}

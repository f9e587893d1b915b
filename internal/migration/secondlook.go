// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// againKey is the key of the objects to look at again.
	againKey = "again.json"
	// maxEarly and maxSample bound them. A name with its namespace has up to 317
	// bytes, so all of them leave room in a ConfigMap.
	maxEarly  = 200
	maxSample = 300
)

// secondLook are the objects that are patched once more when the pass is over.
type secondLook struct {
	// Early are the first that were found current. An API server that still
	// encoded at the old version would have said the same of objects that are
	// stored at it.
	Early []string `json:"early,omitempty"`
	// Until is when the last of them was found current.
	Until *metav1.Time `json:"until,omitempty"`
	// Sample is spread evenly over all objects.
	Sample []string `json:"sample,omitempty"`

	changed bool
}

func openSecondLook(data map[string]string) (secondLook, error) {
	var s secondLook
	if text := data[againKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return s, fmt.Errorf("the list of objects to look at again is not readable: %w", err)
		}
	}
	return s, nil
}

// add takes the result of the object with this index in the pass.
func (s *secondLook) add(run string, r result, index int64, now time.Time) {
	if r.outcome == current && len(s.Early) < maxEarly {
		s.Early = append(s.Early, r.object)
		until := metav1.NewTime(now)
		s.Until, s.changed = &until, true
	}
	if r.outcome != current && r.outcome != rewritten {
		return
	}
	if len(s.Sample) < maxSample {
		s.Sample = append(s.Sample, r.object)
		s.changed = true
		return
	}
	if place := draw(run, index); place < maxSample {
		s.Sample[place], s.changed = r.object, true
	}
}

// draw is a number from 0 to index, the same whenever a page is done again: with
// it every object has the same chance to be in the sample (reservoir sampling).
func draw(run string, index int64) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(run))
	return rand.New(rand.NewPCG(hash.Sum64(), uint64(index))).Uint64N(uint64(index + 1))
}

// write puts what changed since the last write into data.
func (s *secondLook) write(data map[string]string) error {
	if !s.changed {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot encode the list of objects to look at again: %w", err)
	}
	data[againKey], s.changed = string(text), false
	return nil
}

// objectsOf are objects of which nothing but the name is known.
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

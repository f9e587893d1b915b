// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

const (
	// maxMessage is the limit of a message in bytes. Validation messages can repeat a whole object,
	// and ten messages must fit into a status.
	maxMessage = 1024
	// maxListedMessage is the limit of a message in the list of all failures, in bytes.
	maxListedMessage = 256
	// chunkBytes is the size of a chunk, which has its own key. A page rewrites only the last
	// chunk.
	chunkBytes = 64 << 10
	// maxChunks bounds the list: a ConfigMap has up to 1 MiB. The log has the remaining failures.
	maxChunks = 8
)

// FailuresOf reads the list of failed objects from the data of a run's ConfigMap. The list is
// complete up to about half a MiB.
func FailuresOf(data map[string]string) ([]v1alpha1.MigrationFailure, error) {
	var all []v1alpha1.MigrationFailure
	for i := range maxChunks {
		text := data[chunkKey(i)]
		if text == "" {
			return all, nil
		}
		var chunk []v1alpha1.MigrationFailure
		if err := json.Unmarshal([]byte(text), &chunk); err != nil {
			return nil, fmt.Errorf("the list of failed objects in %s is not readable: %w", chunkKey(i), err)
		}
		all = append(all, chunk...)
	}
	return all, nil
}

func chunkKey(i int) string { return fmt.Sprintf("failures-%d.json", i) }

// failureList is the list of all failed objects. It has only the last chunk in memory.
type failureList struct {
	chunk int
	last  []v1alpha1.MigrationFailure
	size  int
}

// openFailures continues a saved list.
func openFailures(data map[string]string) (failureList, error) {
	var l failureList
	for l.chunk < maxChunks-1 && data[chunkKey(l.chunk+1)] != "" {
		l.chunk++
	}
	text := data[chunkKey(l.chunk)]
	if text == "" {
		return l, nil
	}
	if err := json.Unmarshal([]byte(text), &l.last); err != nil {
		return l, fmt.Errorf("the list of failed objects in %s is not readable: %w", chunkKey(l.chunk), err)
	}
	l.size = len(text)
	return l, nil
}

// add appends failures, and writes each changed key into data once.
func (l *failureList) add(failures []v1alpha1.MigrationFailure, data map[string]string) error {
	written := true
	for _, f := range failures {
		f.Message = truncate(f.Message, maxListedMessage)
		text, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("cannot encode the failure of %s: %w", f.Object, err)
		}
		if l.size+len(text) > chunkBytes {
			if l.chunk == maxChunks-1 {
				break
			}
			if !written {
				if err := l.write(data); err != nil {
					return err
				}
			}
			*l = failureList{chunk: l.chunk + 1}
		}
		l.last = append(l.last, f)
		l.size += len(text) + 1
		written = false
	}
	if written {
		return nil
	}
	return l.write(data)
}

func (l *failureList) write(data map[string]string) error {
	text, err := json.Marshal(l.last)
	if err != nil {
		return fmt.Errorf("cannot encode the list of failed objects: %w", err)
	}
	data[chunkKey(l.chunk)] = string(text)
	return nil
}

// clear removes all failures.
func (l *failureList) clear(data map[string]string) {
	for i := range l.chunk + 1 {
		data[chunkKey(i)] = ""
	}
	*l = failureList{}
}

// truncate shortens a message to at most limit bytes.
func truncate(message string, limit int) string {
	if len(message) <= limit {
		return message
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(message[:limit-len(ellipsis)], "") + ellipsis
}

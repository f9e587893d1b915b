// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// thisProcess identifies this process to users and to other processes.
func thisProcess() string {
	name, host := "someone", "an unknown host"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return fmt.Sprintf("%s on %s, process %d (%s)", name, host, os.Getpid(), randomID())
}

// randomID returns a name that no other run has.
func randomID() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// unfinished returns the unfinished run of this state of the target in the data of its record, or
// nil. The error says that the record cannot be used.
func unfinished(data map[string]string, target *Target) (*contract.Record, error) {
	text := data[contract.RecordKey]
	if text == "" {
		return nil, nil
	}
	found, err := contract.ParseRecord([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: add --restart to start from the first object", err)
	}
	if found.Finished() || !found.Matches(target.pin()) {
		return nil, nil
	}
	return &found, nil
}

// begin returns the run to do: the unfinished one of the record, or another one, for which it clears
// the record.
func begin(ctx context.Context, r record, target *Target, restart bool) (run string, err error) {
	data, err := r.Load(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot read the record, %s: %w", r, err)
	}
	if !restart {
		found, err := unfinished(data, target)
		if err != nil {
			return "", fmt.Errorf("%s: %w", r, err)
		}
		if found != nil {
			return found.Run, nil
		}
	}
	if len(data) > 0 {
		if err := r.reset(ctx); err != nil {
			return "", fmt.Errorf("cannot clear the record of the previous run, %s: %w", r, err)
		}
	}
	return randomID(), nil
}

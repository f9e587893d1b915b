// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
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

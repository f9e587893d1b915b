// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A ruleset is stored as JSON, compressed by gzip, under a name with its owner and its hash. All
// rulesets of an owner share one ConfigMap, which must be smaller than 1 MiB.

// storedSuffix follows the hash in the name of a stored ruleset.
const storedSuffix = ".json.gz"

// StoredName is the name of a stored ruleset: its key in a ConfigMap, and its file in pods. The
// owner, a DNS label, is the policy that the ruleset belongs to: pods may mount those of several.
func StoredName(owner, hash string) string { return owner + "." + hash + storedSuffix }

// StoredHash returns the hash in the name of a stored ruleset, and whether it is such a name.
func StoredHash(name string) (hash string, is bool) {
	_, hash, is = cutStored(name)
	return hash, is
}

// StoredOwner returns the owner in the name of a stored ruleset, and whether it is such a name.
func StoredOwner(name string) (owner string, is bool) {
	owner, _, is = cutStored(name)
	return owner, is
}

func cutStored(name string) (owner, hash string, is bool) {
	name, is = strings.CutSuffix(name, storedSuffix)
	dot := strings.LastIndexByte(name, '.')
	if !is || dot < 0 {
		return "", "", false
	}
	return name[:dot], name[dot+1:], true
}

// maxTextBytes bounds the size of a ruleset in JSON. A compressed text of 1 MiB could expand to
// 1 GiB.
const maxTextBytes = 64 << 20

// Store compresses the text of a ruleset.
func Store(text []byte) []byte {
	var stored bytes.Buffer
	writer := gzip.NewWriter(&stored)
	_, _ = writer.Write(text) // a buffer returns no errors
	_ = writer.Close()
	return stored.Bytes()
}

// LoadStored reads a stored ruleset. The error says what is wrong with it, for example that its
// hash is another one.
func LoadStored(hash string, stored []byte) (*Ruleset, error) {
	text, err := Expand(stored)
	if err != nil {
		return nil, err
	}
	if got := HashOf(text); got != hash {
		return nil, fmt.Errorf("the ruleset has the hash %s, not %s", got, hash)
	}
	return Load(text)
}

// Expand returns the text of a stored ruleset.
func Expand(stored []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, fmt.Errorf("decompress the ruleset: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxTextBytes+1))
	if err != nil {
		return nil, fmt.Errorf("decompress the ruleset: %w", err)
	}
	if len(text) > maxTextBytes {
		return nil, fmt.Errorf("the ruleset is larger than %d bytes", maxTextBytes)
	}
	return text, nil
}

// Load reads a ruleset that Marshal wrote, of which the hash has been checked (LoadStored): it looks for no damage. It fails
// for what another version of conversion-operator wrote, and this one does not know.
func Load(data []byte) (*Ruleset, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	ruleset := &Ruleset{}
	if err := decoder.Decode(ruleset); err != nil {
		return nil, fmt.Errorf("the ruleset is not readable: %w", err)
	}
	if ruleset.Format != RulesetFormat {
		return nil, fmt.Errorf("the ruleset has format %d, this version of conversion-operator reads %d", ruleset.Format, RulesetFormat)
	}
	return ruleset, nil
}

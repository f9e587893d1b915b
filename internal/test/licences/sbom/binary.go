// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// standardLibrary is what cyclonedx-gomod calls it.
const standardLibrary = "std"

// binary is what a binary knows of itself.
type binary struct {
	// Module is the path of its own, and Version and Licence are what it says of itself.
	Module, Version, Licence string
	// Sum is the SHA-256 of the file.
	Sum string
	// Modules are those that it is made of, its own not among them: path@version, and
	// the hash of their sources, which is empty for the standard library.
	Modules map[string]string
}

// name is that of its own module, as of the others.
func (b *binary) name() string { return b.Module + "@" + b.Version }

// inspect reads what Go has written into a binary, and asks it for the rest.
func inspect(ctx context.Context, path string) (*binary, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	made := &binary{Module: info.Main.Path, Sum: hex.EncodeToString(sum[:]), Modules: map[string]string{standardLibrary + "@" + info.GoVersion: ""}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
		if err != nil {
			return nil, fmt.Errorf("the sum of %s: %w", module.Path, err)
		}
		made.Modules[module.Path+"@"+module.Version] = hex.EncodeToString(sum)
	}
	return made, ask(ctx, made, path)
}

// ask has the binary itself say what it is.
func ask(ctx context.Context, made *binary, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	answer, err := exec.CommandContext(ctx, path, "version", "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("%s version: %w", path, err)
	}
	said := struct{ Version, Licence string }{}
	if err := json.Unmarshal(answer, &said); err != nil {
		return fmt.Errorf("%s version: %w", path, err)
	}
	made.Version, made.Licence = said.Version, said.Licence
	return nil
}

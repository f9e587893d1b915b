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

// standardLibrary is the name of the standard library in the output of cyclonedx-gomod.
const standardLibrary = "std"

// binary describes a Go binary, as recorded in it.
type binary struct {
	// Module is the path of the main module. Version and Licence are what the program prints.
	Module, Version, Licence string
	// Sum is the SHA-256 of the file.
	Sum string
	// Modules are the linked modules without the main one: from path@version to the hash of the
	// sources, which is empty for the standard library.
	Modules map[string]string
}

// name returns the main module as path@version.
func (b *binary) name() string { return b.Module + "@" + b.Version }

// inspect reads the build information of a binary, and runs it for version and licence.
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

// ask runs the binary to get its version and licence.
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

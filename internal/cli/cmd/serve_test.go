// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// rulesetText is a ruleset without rules.
func rulesetText(t *testing.T, crd string, versions ...string) []byte {
	t.Helper()
	text, err := (&conversion.Ruleset{Format: conversion.RulesetFormat, CRD: crd, Group: "example.com", Kind: "CronTab", Hub: versions[0], Versions: versions}).Marshal()
	expect.NoError(t, err)
	return text
}

func mountRulesets(t *testing.T, rulesets ...[]byte) string {
	t.Helper()
	directory := t.TempDir()
	for _, text := range rulesets {
		name := conversion.StoredName("owner", conversion.HashOf(text))
		expect.NoError(t, os.WriteFile(filepath.Join(directory, name), conversion.Store(text), 0o600))
	}
	return directory
}

// TestServeFailsWithoutAllRulesets: a pod that cannot load one of its rulesets must not become
// ready.
func TestServeFailsWithoutAllRulesets(t *testing.T) {
	good := rulesetText(t, "crontabs.example.com", "v1")
	cases := map[string]struct {
		rulesets [][]byte
		want     string
	}{
		"none":                 {nil, "no ruleset (*.*.json.gz) found in DIRECTORY: mount the rulesets there, or correct --rulesets"},
		"one of two is broken": {[][]byte{good, []byte("{")}, "ruleset 021fb596db81e6d0 in DIRECTORY: the ruleset is not readable: "},
		"of two definitions": {[][]byte{good, rulesetText(t, "jobs.example.com", "v1")},
			": a pod converts for one CustomResourceDefinition"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			directory := mountRulesets(t, tc.rulesets...)
			_, _, err := run("serve", "--rulesets="+directory, "--certificates="+directory)
			expect.Contains(t, "the error", fmt.Sprint(err), strings.ReplaceAll(tc.want, "DIRECTORY", directory))
		})
	}
}

// TestServeShared: with --shared, the command starts without rulesets, with a broken one, and with
// those of several CustomResourceDefinitions. It then lacks a certificate.
func TestServeShared(t *testing.T) {
	for name, rulesets := range map[string][][]byte{
		"none":   nil,
		"broken": {[]byte("{")},
		"of two": {rulesetText(t, "crontabs.example.com", "v1"), rulesetText(t, "jobs.example.com", "v1")},
	} {
		t.Run(name, func(t *testing.T) {
			directory := mountRulesets(t, rulesets...)
			_, _, err := run("serve", "--shared", "--rulesets="+directory, "--certificates="+directory)
			expect.Contains(t, "the error", fmt.Sprint(err), "loading the serving certificate")
		})
	}
}

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// run runs the program, which has to end by itself.
func run(t *testing.T, args ...string) (output string, err error) {
	var text strings.Builder
	err = Run(t.Context(), args, &text)
	return text.String(), err
}

// TestFlags: what a wrong flag is told.
func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--bind-address=:0":   `--bind-address must be an address with a port between 1 and 65535, such as :9443; it is ":0"`,
		"--bind-address=9443": `--bind-address must be an address with a port between 1 and 65535, such as :9443; it is "9443"`,
		"--drain=-1s":         "--drain must not be negative, is -1s",
		"--max-body-bytes=0":  "--max-body-bytes must be at least 1, is 0",
		"--log-level=loud":    `--log-level must be debug, info or error, is "loud"`,
		"--log-format=xml":    `--log-format must be json or text, is "xml"`,
		"--ruleset=a":         "unknown flag: --ruleset",
		"serve":               `unknown argument "serve": the program has flags only`,
	} {
		_, err := run(t, args)
		expect.Equal(t, args, want, fmt.Sprint(err))
	}
	help, err := run(t, "--help")
	expect.NoError(t, err)
	expect.Contains(t, "the help", help, "Answer the API server's ConversionReviews.\n", "--rulesets string", "--log-level string")
	version, err := run(t, "--version")
	expect.NoError(t, err)
	expect.Contains(t, "the version", version, "converter version ")
}

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

// TestFailsWithoutAllRulesets: a pod that cannot load one of its rulesets must not become
// ready.
func TestFailsWithoutAllRulesets(t *testing.T) {
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
			_, err := run(t, "--rulesets="+directory, "--certificates="+directory)
			expect.Contains(t, "the error", fmt.Sprint(err), strings.ReplaceAll(tc.want, "DIRECTORY", directory))
		})
	}
}

// TestShared: with --shared, the program starts without rulesets, with a broken one, and with
// those of several CustomResourceDefinitions. It then lacks a certificate.
func TestShared(t *testing.T) {
	for name, rulesets := range map[string][][]byte{
		"none":   nil,
		"broken": {[]byte("{")},
		"of two": {rulesetText(t, "crontabs.example.com", "v1"), rulesetText(t, "jobs.example.com", "v1")},
	} {
		t.Run(name, func(t *testing.T) {
			directory := mountRulesets(t, rulesets...)
			_, err := run(t, "--shared", "--rulesets="+directory, "--certificates="+directory)
			expect.Contains(t, "the error", fmt.Sprint(err), "loading the serving certificate")
		})
	}
}

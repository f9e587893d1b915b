// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/cli/backup"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
)

// isBackup reports whether the input is a backup, which is the only input then.
func (o *convertOptions) isBackup(stdin *bufio.Reader) (bool, error) {
	for _, file := range o.files {
		is, err := isCompressed(file, stdin)
		switch {
		case err != nil:
			return false, err
		case is && len(o.files) > 1:
			return false, fmt.Errorf("%s is a backup: convert it alone, without other files", sourcesOf([]string{file}))
		case is && o.output != "":
			return false, errors.New("-o is for objects: a backup keeps its format")
		case is:
			return true, nil
		}
	}
	return false, nil
}

// isCompressed reports whether a file begins like a compressed archive. It consumes nothing of stdin, or of
// a pipe, which could not be read again.
func isCompressed(name string, stdin *bufio.Reader) (bool, error) {
	if name == manifest.Stdin {
		start, _ := stdin.Peek(2) // an error comes again when it is read
		return backup.IsCompressed(start), nil
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // it was only read
	start := make([]byte, 2)
	_, err = io.ReadFull(file, start)
	return err == nil && backup.IsCompressed(start), nil
}

// convertBackup writes the converted backup to stdout once it is complete.
func (o *convertOptions) convertBackup(command *cobra.Command, converter *conversion.Converter, ruleset *conversion.Ruleset, stdin io.Reader) (err error) {
	if isTerminal(command.OutOrStdout()) {
		return errors.New("a backup cannot be shown in a terminal: send it to a file, for example with > converted.tar.gz")
	}
	if o.files[0] != manifest.Stdin {
		file, err := os.Open(o.files[0])
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		stdin = file
	}
	complete, err := os.CreateTemp("", "converted-*.tar.gz")
	if err != nil {
		return fmt.Errorf("create a temporary file: %w", err)
	}
	// A signal may end the command while it writes to a pipe. Windows only removes a file that is closed.
	removed := os.Remove(complete.Name()) == nil
	defer func() {
		if err = errors.Join(err, complete.Close()); !removed {
			err = errors.Join(err, os.Remove(complete.Name()))
		}
	}()
	converting := backup.Conversion{Resource: ruleset.CRD, To: o.to, Convert: func(object []byte) ([]byte, error) {
		return converter.Convert(nil, object, o.to)
	}}
	result, err := converting.Run(complete, bufio.NewReader(until{command.Context(), stdin}))
	if err != nil {
		return fmt.Errorf("%s: %w", sourcesOf(o.files), err)
	}
	if len(result.Problems) > 0 {
		return &exitError{exitFound, problemsOf(result)}
	}
	if _, err := complete.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(command.OutOrStdout(), complete); err != nil {
		return fmt.Errorf("write the backup, which is not complete now: %w", err)
	}
	fmt.Fprintf(command.ErrOrStderr(), "%s: objects converted to %s: %d, at %s before: %d; other files, unchanged: %d\n",
		ruleset.CRD, o.to, result.Converted, o.to, result.Current, result.Others)
	return nil
}

// problemsOf returns an error with a line for each problem.
func problemsOf(result *backup.Result) error {
	lines := []string{"objects in the backup cannot be converted, so nothing was written:"}
	for _, problem := range result.Problems {
		lines = append(lines, "  "+problem.Error())
	}
	if result.More > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", result.More))
	}
	return errors.New(strings.Join(lines, "\n"))
}

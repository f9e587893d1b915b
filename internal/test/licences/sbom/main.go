// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sbom reads the software bill of materials that cyclonedx-gomod made for a binary of this
// checkout, adds licences, and compares it with the binary. It writes the result only if they
// agree.
//
//	go run ./internal/test/licences/sbom BINARY FROM TO
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/conversion-operator/conversion-operator/internal/test/licences"
)

// root is the root of the checkout, in which this command runs.
const root = "."

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: sbom BINARY FROM TO"))
	}
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

func run(ctx context.Context, path, from, to string) error {
	made, err := inspect(ctx, path)
	if err != nil {
		return err
	}
	bom, err := read(from)
	if err != nil {
		return err
	}
	directories, err := licences.Linked(ctx, root, runtime.GOOS)
	if err != nil {
		return err
	}
	directories[made.name()] = root
	if err := addLicences(bom, directories); err != nil {
		return err
	}
	if err := judge(bom, made); err != nil {
		return fmt.Errorf("%s is not what %s is made of:\n%w", from, path, err)
	}
	return write(bom, to)
}

func read(path string) (*cyclonedx.BOM, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	bom := &cyclonedx.BOM{}
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(content), cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return bom, nil
}

func write(bom *cyclonedx.BOM, path string) error {
	file, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	if err := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return file.Close()
}

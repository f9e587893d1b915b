// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page has the files of the page. `make playground-page` builds dist from src, with the libraries that
// package-lock.json pins.
package page

import (
	"embed"
	"io/fs"

	"github.com/conversion-operator/conversion-operator/internal/cli/report"
)

//go:embed index.html playground.css dist
var files embed.FS

// File is a file of the page, and its content type.
type File struct {
	Type string
	Text []byte
}

// Files returns the files of the page by their names. The style sheet of reports is one of them, because the page
// shows parts of reports.
func Files() (map[string]File, error) {
	all := map[string]File{"report.css": {"text/css; charset=utf-8", []byte(report.Style())}}
	for _, file := range []struct{ name, from, contentType string }{
		{"index.html", "index.html", "text/html; charset=utf-8"},
		{"playground.css", "playground.css", "text/css; charset=utf-8"},
		{"playground.js", "dist/playground.js", "text/javascript; charset=utf-8"},
		{"licences.txt", "dist/licences.txt", "text/plain; charset=utf-8"},
	} {
		text, err := fs.ReadFile(files, file.from)
		if err != nil {
			return nil, err
		}
		all[file.name] = File{file.contentType, text}
	}
	return all, nil
}

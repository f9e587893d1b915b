// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// tracingFlag says where traces go. Only long-running commands have it.
func tracingFlag(flags *pflag.FlagSet, endpoint *string) {
	flags.StringVar(endpoint, "tracing-endpoint", tracing.Endpoint(os.Getenv),
		"URL of an OpenTelemetry receiver (OTLP over gRPC; http://, or https:// for TLS) for traces; "+
			"default $OTEL_EXPORTER_OTLP_ENDPOINT; empty for none")
}

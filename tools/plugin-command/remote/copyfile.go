package remote

import (
	"context"

	"github.com/pulumi/pulumi-go-provider/infer"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// CopyFile is command:remote:CopyFile, the older form of CopyToRemote. Every change replaces it.
type CopyFile struct{}

// CopyFileInputs has every field that the SDK sends.
type CopyFileInputs struct {
	Connection Connection `pulumi:"connection"        provider:"secret"`
	LocalPath  string     `pulumi:"localPath"`
	RemotePath string     `pulumi:"remotePath"`
	Triggers   []any      `pulumi:"triggers,optional" provider:"replaceOnChanges"`
}

// CopyFileOutputs are the inputs.
type CopyFileOutputs struct{ CopyFileInputs }

// Create copies the file.
func (CopyFile) Create(
	ctx context.Context, req infer.CreateRequest[CopyFileInputs],
) (infer.CreateResponse[CopyFileOutputs], error) {
	response := infer.CreateResponse[CopyFileOutputs]{Output: CopyFileOutputs{req.Inputs}}
	id, err := resource.NewUniqueHex("", 8, 0)
	if err != nil || req.DryRun {
		return response, err
	}
	response.ID = id
	to, closeUpload, err := openUpload(ctx, &req.Inputs.Connection)
	if err != nil {
		return response, err
	}
	defer closeUpload()
	return response, to.file(req.Inputs.LocalPath, req.Inputs.RemotePath)
}
